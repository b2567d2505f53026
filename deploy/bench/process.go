package main

import (
	"context"
	"fmt"
	"os"
	"runtime"
	"strconv"
	"strings"
	"time"

	"github.com/penstock/penstock/deploy/servers"
)

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

// machine describes where the run took place.
func machine() string {
	text, _ := os.ReadFile("/proc/cpuinfo")
	return fmt.Sprintf("%d cores, %s, %s/%s, %s", runtime.NumCPU(), lineValue(string(text), "model name"), runtime.GOOS, runtime.GOARCH, runtime.Version())
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
