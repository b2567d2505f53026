package codec

import (
	"errors"
	"fmt"
	"os"
	"strconv"
	"strings"
	"time"

	"golang.org/x/sys/unix"
)

// niceness of a worker: frames wait for the gateway, not the reverse.
const niceness = 5

// limitProcess bounds the data segment of this process to what it uses and growth octets
// more, and lowers its priority.
func limitProcess(growth uint64) error {
	statm, err := os.ReadFile("/proc/self/statm")
	if err != nil {
		return err
	}
	fields := strings.Fields(string(statm)) // size resident shared text lib data dt, in pages
	if len(fields) < 6 {
		return fmt.Errorf("/proc/self/statm is not readable: %q", statm)
	}
	pages, err := strconv.ParseUint(fields[5], 10, 64)
	if err != nil {
		return err
	}
	limit := pages*uint64(os.Getpagesize()) + growth
	err = unix.Setrlimit(unix.RLIMIT_DATA, &unix.Rlimit{Cur: limit, Max: limit})
	// On Linux, each thread has a priority; threads that begin later inherit it.
	threads, readErr := os.ReadDir("/proc/self/task")
	for _, thread := range threads {
		if id, parseErr := strconv.Atoi(thread.Name()); parseErr == nil {
			_ = unix.Setpriority(unix.PRIO_PROCESS, id, niceness) // the thread may have ended
		}
	}
	return errors.Join(err, readErr)
}

// cpuTime is the CPU time that this process has used.
func cpuTime() time.Duration {
	var t unix.Timespec
	if unix.ClockGettime(unix.CLOCK_PROCESS_CPUTIME_ID, &t) != nil {
		return 0
	}
	return time.Duration(t.Nano())
}
