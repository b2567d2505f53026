package relaytest

import (
	"os"
	"os/exec"
	"syscall"
	"testing"
)

// Process is a program that a test runs.
type Process struct {
	*os.Process
	// Ended is closed when the program has ended.
	Ended chan struct{}
}

// StartProcess starts a program, and ends the test if it cannot be started. One that is
// started for Shared ends with this process.
func StartProcess(t testing.TB, cmd *exec.Cmd) *Process {
	t.Helper()
	owner, outlives := t.(*process)
	if outlives {
		if cmd.SysProcAttr == nil {
			cmd.SysProcAttr = &syscall.SysProcAttr{}
		}
		cmd.SysProcAttr.Setpgid, cmd.SysProcAttr.Pdeathsig = true, 0
	}
	NoError(t, cmd.Start())
	if outlives {
		owner.guard(cmd.Process)
	}
	p := &Process{cmd.Process, make(chan struct{})}
	go func() {
		defer close(p.Ended)
		_ = cmd.Wait()
	}()
	return p
}

// Kill kills the program, as a crash would, and waits until it has ended. It does nothing
// if it has ended before, or if p is nil.
func (p *Process) Kill() {
	if p == nil {
		return
	}
	_ = p.Process.Kill()
	<-p.Ended
}
