// Package servers runs the processes beside a gateway that a program of deploy
// measures or breaks: the gateway itself, and a PostgreSQL, a Redis and an
// InfluxDB of the run's own. It imports none of our packages.
package servers

import (
	"bytes"
	"context"
	"fmt"
	"math/rand/v2"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"time"
)

// StartTime bounds how long a process may take to answer, on a busy machine too.
const StartTime = 5 * time.Minute

// Run is the processes of a run and the directory of their data and logs.
type Run struct {
	Dir string

	mu    sync.Mutex
	procs []*exec.Cmd
}

// Start starts a process whose output goes to a file of the run.
func (r *Run) Start(ctx context.Context, name string, env []string, command string, args ...string) (*exec.Cmd, error) {
	cmd := exec.CommandContext(ctx, command, args...)
	cmd.Env = append(os.Environ(), env...)
	return cmd, r.Launch(name, cmd)
}

// Launch starts a command whose output goes to a file of the run.
func (r *Run) Launch(name string, cmd *exec.Cmd) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	file, err := os.Create(filepath.Join(r.Dir, name+strconv.Itoa(len(r.procs))+".log"))
	if err != nil {
		return err
	}
	defer func() { _ = file.Close() }()
	cmd.Stdout, cmd.Stderr = file, file
	if err := cmd.Start(); err != nil {
		return fmt.Errorf("%s: %w", name, err)
	}
	r.procs = append(r.procs, cmd)
	return nil
}

// Stop ends every process that still runs.
func (r *Run) Stop() {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, cmd := range r.procs {
		if cmd.ProcessState == nil {
			End(cmd)
		}
	}
}

// End ends a process as its context would, and waits for it.
func End(cmd *exec.Cmd) {
	_ = cmd.Cancel()
	_ = cmd.Wait()
}

// Explain adds the end of what a process said to an error about it.
func Explain(cmd *exec.Cmd, err error) error {
	if err == nil {
		return nil
	}
	return fmt.Errorf("%s: %w; it said:\n%s", filepath.Base(cmd.Path), err, Said(cmd))
}

// Said is the end of what a process wrote.
func Said(cmd *exec.Cmd) string {
	f, ok := cmd.Stdout.(*os.File)
	if !ok {
		return ""
	}
	text, _ := os.ReadFile(f.Name())
	return string(text[max(0, len(text)-2000):])
}

// Until waits for a condition.
func Until(ctx context.Context, atMost time.Duration, label string, cond func() bool) error {
	return UntilEvery(ctx, 20*time.Millisecond, atMost, label, cond)
}

// UntilEvery waits for a condition, which is checked at an interval.
func UntilEvery(ctx context.Context, every, atMost time.Duration, label string, cond func() bool) error {
	ctx, cancel := context.WithTimeout(ctx, atMost)
	defer cancel()
	tick := time.NewTicker(every)
	defer tick.Stop()
	for !cond() {
		select {
		case <-ctx.Done():
			return fmt.Errorf("waiting for %s: %w", label, ctx.Err())
		case <-tick.C:
		}
	}
	return nil
}

// Reachable waits until something listens on an address.
func Reachable(ctx context.Context, addr string) error {
	return Until(ctx, StartTime, addr+" reachable", func() bool {
		c, err := (&net.Dialer{Timeout: time.Second}).DialContext(ctx, "tcp", addr)
		if err != nil {
			return false
		}
		_ = c.Close()
		return true
	})
}

// reserved has the locks of the addresses that FreeAddr has returned.
var reserved sync.Map

// FreeAddr is a loopback address on which no process listens, another one at each call.
// Its port is below those that the system gives to outgoing connections and to listeners
// that ask for any. It stays reserved until this process ends: the UDP port of the same
// number is the lock that other runs and the tests (relay/porttest) see.
func FreeAddr() string {
	const first, count = 10_000, 20_000
	for {
		addr := net.JoinHostPort("127.0.0.1", strconv.Itoa(first+rand.IntN(count)))
		lock, err := net.ListenPacket("udp", addr)
		if err != nil {
			continue
		}
		if l, err := net.Listen("tcp", addr); err == nil {
			_ = l.Close()
			reserved.Store(addr, lock)
			return addr
		}
		_ = lock.Close()
	}
}

// SignalAll sends a signal to a process and its children, which may be in process
// groups of their own, and returns the children. The parent is stopped before they
// are listed, so that it starts no other child.
func SignalAll(cmd *exec.Cmd, signal syscall.Signal) (children []int) {
	parent := cmd.Process.Pid
	if signal != syscall.SIGCONT && syscall.Kill(parent, syscall.SIGSTOP) == nil {
		for f := Stat(parent); f != nil && f[0] != "T" && f[0] != "Z"; f = Stat(parent) {
			time.Sleep(time.Millisecond)
		}
	}
	children = Children(parent)
	for _, pid := range append([]int{parent}, children...) {
		_ = syscall.Kill(pid, signal)
	}
	return children
}

// Children are the processes that a process has started and that have not ended.
func Children(parent int) (pids []int) {
	names, _ := filepath.Glob("/proc/[0-9]*/stat")
	for _, name := range names {
		pid, err := strconv.Atoi(filepath.Base(filepath.Dir(name)))
		if f := Stat(pid); err == nil && len(f) > 1 && f[0] != "Z" && f[1] == strconv.Itoa(parent) {
			pids = append(pids, pid)
		}
	}
	slices.Sort(pids)
	return pids
}

// Stat is the fields of a process in /proc behind its name, none if it has ended.
func Stat(pid int) []string {
	b, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		return nil
	}
	return strings.Fields(string(b[bytes.LastIndexByte(b, ')')+1:]))
}
