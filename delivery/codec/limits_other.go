//go:build !linux

package codec

import (
	"syscall"
	"time"
)

// limitProcess does nothing: only Linux bounds the data segment in a way that Go survives.
func limitProcess(uint64) error { return nil }

// cpuTime is the CPU time that this process has used.
func cpuTime() time.Duration {
	var u syscall.Rusage
	if syscall.Getrusage(syscall.RUSAGE_SELF, &u) != nil {
		return 0
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}
