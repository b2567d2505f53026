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

// idleFor is how long a gateway is idle before its memory and CPU time are read.
const idleFor = 30 * time.Second

// idle measures how fast gateways without configuration start in empty directories, and the
// memory and CPU time of the last gateway while it is idle.
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

// userHZ is the number of ticks a second in /proc, the same on every Linux.
const userHZ = 100

// cpu returns the CPU time that processes and their children have used, including children
// that have ended.
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

// ownCPU returns the CPU time that this process has used.
func ownCPU() time.Duration {
	return time.Duration(statSum(os.Getpid(), 11, 12)) * time.Second / userHZ
}

// statSum returns the sum of fields of /proc/PID/stat; field 0 is the state.
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

// resident returns the resident memory of a process and its children, in bytes.
func resident(pid int) (bytes int64) {
	for _, p := range append(servers.Children(pid), pid) {
		bytes += statSum(p, 21) * int64(os.Getpagesize())
	}
	return bytes
}

// maxResident returns the maximum of resident until ctx ends.
func maxResident(ctx context.Context, pid int) (bytes int64) {
	for sleep(ctx, 50*time.Millisecond) {
		bytes = max(bytes, resident(pid))
	}
	return bytes
}

// peakMemory returns the largest resident memory of a process since its start, in bytes.
func peakMemory(pid int) int64 {
	text, _ := os.ReadFile(fmt.Sprintf("/proc/%d/status", pid))
	fields := strings.Fields(lineValue(string(text), "VmHWM"))
	if len(fields) == 0 {
		return 0
	}
	kb, _ := strconv.ParseInt(fields[0], 10, 64)
	return kb << 10
}

// lineValue returns the value of the first line "name: value" in text, or "unknown".
func lineValue(text, name string) string {
	for line := range strings.Lines(text) {
		if key, value, _ := strings.Cut(line, ":"); strings.TrimSpace(key) == name {
			return strings.TrimSpace(value)
		}
	}
	return "unknown"
}

// sleep waits for d. It returns false as soon as ctx ends.
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
