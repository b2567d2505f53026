//go:build !linux

package codec

import (
	"syscall"
	"time"
)

// limitProcess does nothing, because RLIMIT_DATA covers the memory of the Go runtime on Linux only.
func limitProcess(uint64) error { return nil }

// cpuTime returns the CPU time of this process.
func cpuTime() time.Duration {
	var u syscall.Rusage
	if syscall.Getrusage(syscall.RUSAGE_SELF, &u) != nil {
		return 0
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}
