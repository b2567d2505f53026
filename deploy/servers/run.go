// Package servers starts, kills and stops processes for benchmarks and tests: gateways, and
// PostgreSQL, Redis and InfluxDB servers with data of their own. It imports no other package of
// this module.
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

// StartTime is the maximum time until a process answers. It is long enough for a busy machine.
const StartTime = 5 * time.Minute

// Run contains the processes of a run and the directory of their data and logs.
type Run struct {
	Dir string

	mu    sync.Mutex
	procs []*exec.Cmd
}

// Start starts a command with additional environment variables, as Launch does.
func (r *Run) Start(ctx context.Context, name string, env []string, command string, args ...string) (*exec.Cmd, error) {
	cmd := exec.CommandContext(ctx, command, args...)
	cmd.Env = append(os.Environ(), env...)
	return cmd, r.Launch(name, cmd)
}

// Launch starts a command and writes its output to a new file in r.Dir.
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

// Stop ends every process that still runs, and waits for it.
func (r *Run) Stop() {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, cmd := range r.procs {
		if cmd.ProcessState == nil {
			End(cmd)
		}
	}
}

// End ends a process as the end of its context does, and waits for it.
func End(cmd *exec.Cmd) {
	_ = cmd.Cancel()
	_ = cmd.Wait()
}

// Explain adds the end of a process's output to an error about the process.
func Explain(cmd *exec.Cmd, err error) error {
	if err == nil {
		return nil
	}
	return fmt.Errorf("%s: %w; the end of its output:\n%s", filepath.Base(cmd.Path), err, OutputTail(cmd))
}

// OutputTail returns the last 2,000 bytes of a process's output.
func OutputTail(cmd *exec.Cmd) string {
	f, ok := cmd.Stdout.(*os.File)
	if !ok {
		return ""
	}
	text, _ := os.ReadFile(f.Name())
	return string(text[max(0, len(text)-2000):])
}

// Until waits until cond returns true, for at most timeout. The error contains label.
func Until(ctx context.Context, timeout time.Duration, label string, cond func() bool) error {
	return UntilEvery(ctx, 20*time.Millisecond, timeout, label, cond)
}

// UntilEvery is like Until, with an interval between the calls of cond.
func UntilEvery(ctx context.Context, interval, timeout time.Duration, label string, cond func() bool) error {
	ctx, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()
	tick := time.NewTicker(interval)
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

// Reachable waits until a process accepts connections on an address.
func Reachable(ctx context.Context, addr string) error {
	return Until(ctx, StartTime, addr+" to be reachable", func() bool {
		c, err := (&net.Dialer{Timeout: time.Second}).DialContext(ctx, "tcp", addr)
		if err != nil {
			return false
		}
		_ = c.Close()
		return true
	})
}

// reserved contains the UDP sockets that reserve the addresses returned by FreeAddr.
var reserved sync.Map

// FreeAddr returns a loopback address on which no process listens, a different one at each call.
// Its port is below the ports that the system chooses for connections and listeners. It stays
// reserved until this process ends: the UDP port with the same number is a lock that other runs
// and the tests (relay/porttest) respect.
func FreeAddr() string {
	const minPort, count = 10_000, 20_000
	for {
		addr := net.JoinHostPort("127.0.0.1", strconv.Itoa(minPort+rand.IntN(count)))
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

// SignalAll sends a signal to a process and its children, which may be in process groups of their
// own, and returns the children's pids. Unless the signal is SIGCONT, it stops the parent before it
// lists the children, so that the parent cannot start more of them.
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

// Children returns the pids of the children of a process that have not ended.
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

// Stat returns the fields of /proc/PID/stat after the name, or nil if the file is missing.
func Stat(pid int) []string {
	b, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		return nil
	}
	return strings.Fields(string(b[bytes.LastIndexByte(b, ')')+1:]))
}
