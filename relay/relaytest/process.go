package relaytest

import (
	"os"
	"os/exec"
	"syscall"
	"testing"
)

// Process is a running program of a test.
type Process struct {
	*os.Process
	// Ended is closed when the program has ended.
	Ended chan struct{}
}

// StartProcess starts a program. It ends the test if the program cannot be started. A program that
// the start function of Shared starts ends with this process.
func StartProcess(t testing.TB, cmd *exec.Cmd) *Process {
	t.Helper()
	owner, isShared := t.(*process)
	if isShared {
		if cmd.SysProcAttr == nil {
			cmd.SysProcAttr = &syscall.SysProcAttr{}
		}
		cmd.SysProcAttr.Setpgid, cmd.SysProcAttr.Pdeathsig = true, 0
	}
	NoError(t, cmd.Start())
	if isShared {
		owner.guard(cmd.Process)
	}
	p := &Process{cmd.Process, make(chan struct{})}
	go func() {
		defer close(p.Ended)
		_ = cmd.Wait()
	}()
	return p
}

// Kill kills the program, as in a crash, and waits until it has ended. Kill does nothing if p is
// nil or the program has ended.
func (p *Process) Kill() {
	if p == nil {
		return
	}
	_ = p.Process.Kill()
	<-p.Ended
}
