package sending

import (
	"io"
	"os/exec"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/penstock/penstock/cmd/penstock/e2e"
	"github.com/penstock/penstock/relay/relaytest"
)

// kannelChild is a running program of Kannel.
type kannelChild struct {
	t      *testing.T
	cmd    *exec.Cmd
	log    *e2e.Transcript
	exited chan struct{}
}

// runKannelProgram starts a program, and stops the program when the test ends.
func runKannelProgram(t *testing.T, stdin io.Reader, program string, args ...string) *kannelChild {
	t.Helper()
	c := &kannelChild{t: t, cmd: exec.Command(program, args...), log: new(e2e.Transcript), exited: make(chan struct{})}
	c.cmd.Dir, c.cmd.Stdin, c.cmd.Stdout, c.cmd.Stderr = t.TempDir(), stdin, c.log, c.log
	relaytest.NoError(t, c.cmd.Start())
	go func() { _ = c.cmd.Wait(); close(c.exited) }()
	t.Cleanup(func() {
		c.stop()
		if t.Failed() {
			t.Logf("last output of %s:\n%s", filepath.Base(program), c.tail())
		}
	})
	return c
}

// stop sends SIGINT, as a terminal does, and waits until the program has exited. If the
// program does not exit, stop fails the test and kills it.
func (c *kannelChild) stop() {
	_ = c.cmd.Process.Signal(syscall.SIGINT)
	select {
	case <-c.exited:
	case <-time.After(relaytest.Patience / 3):
		c.t.Errorf("%s did not exit after SIGINT", c.cmd.Path)
		_ = c.cmd.Process.Kill()
		<-c.exited
	}
}

// tail returns the last 60 lines of the program's output, without dumps of octets.
func (c *kannelChild) tail() string {
	var lines []string
	for line := range strings.Lines(c.log.String()) {
		if !strings.Contains(line, "DEBUG:   ") {
			lines = append(lines, line)
		}
	}
	return strings.Join(lines[max(0, len(lines)-60):], "")
}

// awaitOutput waits until the program has printed words.
func (c *kannelChild) awaitOutput(words string) {
	c.t.Helper()
	relaytest.Eventually(c.t, c.cmd.Path+" prints "+words, func() (any, bool) { return "", c.log.Has(words) })
}
