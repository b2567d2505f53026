package main

import (
	"context"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"github.com/penstock/penstock/deploy/servers"
)

// idleFor is the time that a gateway is idle until its memory and CPU time are read.
const idleFor = 30 * time.Second

// idle measures starts of gateways for which nothing is configured, in empty directories,
// and what the last one takes when it has nothing to do.
func idle(ctx context.Context, b *bench) error {
	info, err := os.Stat(b.binary)
	if err != nil {
		return err
	}
	var starts, ticks []float64
	var pid int
	for n := range b.rounds {
		addr, start := servers.FreeAddr(), time.Now()
		dir := filepath.Join(b.Dir, fmt.Sprint("idle", n))
		cmd, err := b.Start(ctx, "idle", []string{"PENSTOCK_LISTEN=" + addr, "PENSTOCK_DATA_DIR=" + dir}, b.binary, "serve")
		if err != nil {
			return err
		}
		if err := servers.Explain(cmd, ready(ctx, addr)); err != nil {
			return err
		}
		pid = cmd.Process.Pid
		starts, ticks = append(starts, float64(time.Since(start))), append(ticks, float64(cpu(pid)))
		if n < b.rounds-1 {
			servers.End(cmd)
		}
	}
	used := cpu(pid)
	sleep(ctx, idleFor)
	t := b.table("embedded and empty", "found", "aim")
	defer t.Flush()
	t.row("ready after, median", time.Duration(median(starts)), "≤ 300ms")
	t.row("CPU time until then", time.Duration(median(ticks)), "")
	t.row("memory after "+idleFor.String()+", MiB", resident(pid)>>20, "≤ 70")
	t.row("CPU while idle, % of a core", 100*(cpu(pid)-used).Seconds()/idleFor.Seconds(), "≤ 0.30")
	t.row("the program, MB", float64(info.Size())/1e6, "≤ 66")
	return nil
}

// userHZ is the unit of times in /proc, the same on every Linux.
const userHZ = 100

// cpu is the processor time that processes and their children have used, children that
// have ended included.
func cpu(pids ...int) time.Duration {
	var ticks int64
	for _, pid := range pids {
		ticks += statSum(pid, 11, 12, 13, 14)
		for _, child := range servers.Children(pid) {
			ticks += statSum(child, 11, 12)
		}
	}
	return time.Duration(ticks) * time.Second / userHZ
}

// ownCPU is the processor time that this process has used.
func ownCPU() time.Duration {
	return time.Duration(statSum(os.Getpid(), 11, 12)) * time.Second / userHZ
}

// statSum adds up fields of a process in /proc.
func statSum(pid int, fields ...int) (sum int64) {
	values := servers.Stat(pid)
	for _, i := range fields {
		if i < len(values) {
			n, _ := strconv.ParseInt(values[i], 10, 64)
			sum += n
		}
	}
	return sum
}

// resident is the memory that a process and its children hold, in bytes.
func resident(pid int) (bytes int64) {
	for _, p := range append(servers.Children(pid), pid) {
		bytes += statSum(p, 21) * int64(os.Getpagesize())
	}
	return bytes
}

// maxResident is the most memory that a process and its children hold until ctx ends.
func maxResident(ctx context.Context, pid int) (bytes int64) {
	for sleep(ctx, 50*time.Millisecond) {
		bytes = max(bytes, resident(pid))
	}
	return bytes
}

// peakMemory is the most memory that a process has held, in bytes.
func peakMemory(pid int) int64 {
	text, _ := os.ReadFile(fmt.Sprintf("/proc/%d/status", pid))
	fields := strings.Fields(lineValue(string(text), "VmHWM"))
	if len(fields) == 0 {
		return 0
	}
	kb, _ := strconv.ParseInt(fields[0], 10, 64)
	return kb << 10
}

// lineValue is the value of the first line "name: value" of a file in /proc.
func lineValue(text, name string) string {
	for line := range strings.Lines(text) {
		if key, value, _ := strings.Cut(line, ":"); strings.TrimSpace(key) == name {
			return strings.TrimSpace(value)
		}
	}
	return "unknown"
}

// sleep waits and reports false if ctx ended.
func sleep(ctx context.Context, d time.Duration) bool {
	if d <= 0 {
		return ctx.Err() == nil
	}
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-ctx.Done():
		return false
	case <-timer.C:
		return true
	}
}
