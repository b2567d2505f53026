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

// niceness lowers the priority of a worker below that of the gateway.
const niceness = 5

// limitProcess limits the data segment of this process to its current size plus growth octets,
// and lowers the priority of the process.
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
	// On Linux, each thread has a priority, which new threads inherit.
	threads, readErr := os.ReadDir("/proc/self/task")
	for _, thread := range threads {
		if id, parseErr := strconv.Atoi(thread.Name()); parseErr == nil {
			_ = unix.Setpriority(unix.PRIO_PROCESS, id, niceness) // the thread may have ended
		}
	}
	return errors.Join(err, readErr)
}

// cpuTime returns the CPU time of this process.
func cpuTime() time.Duration {
	var t unix.Timespec
	if unix.ClockGettime(unix.CLOCK_PROCESS_CPUTIME_ID, &t) != nil {
		return 0
	}
	return time.Duration(t.Nano())
}
