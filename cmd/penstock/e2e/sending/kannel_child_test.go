package sending

import (
	"bytes"
	"io"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/penstock/penstock/cmd/penstock/e2e"
)

// kannelPatience is how long anything here may take on a busy machine.
const kannelPatience = e2e.Patience

// kannelSignal says that something has changed, to one who waits.
type kannelSignal chan struct{}

func (s kannelSignal) changed() {
	select {
	case s <- struct{}{}:
	default:
	}
}

// kannelAwait waits until a condition holds, looking whenever the signal comes.
// It reports whether it came to hold.
func kannelAwait(s kannelSignal, holds func() bool) bool {
	late := time.After(kannelPatience)
	for !holds() {
		select {
		case <-s:
		case <-late:
			return false
		}
	}
	return true
}

// kannelLog is what a program prints.
type kannelLog struct {
	mu     sync.Mutex
	text   bytes.Buffer
	signal kannelSignal
}

func newKannelLog() *kannelLog { return &kannelLog{signal: make(kannelSignal, 1)} }

func (l *kannelLog) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	defer l.signal.changed()
	return l.text.Write(p)
}

func (l *kannelLog) has(words string) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	return bytes.Contains(l.text.Bytes(), []byte(words))
}

// tail is the end of it, without the dumps of octets.
func (l *kannelLog) tail() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	var lines []string
	for line := range strings.Lines(l.text.String()) {
		if !strings.Contains(line, "DEBUG:   ") {
			lines = append(lines, line)
		}
	}
	return strings.Join(lines[max(0, len(lines)-60):], "")
}

// kannelChild is a program of Kannel's.
type kannelChild struct {
	t    *testing.T
	cmd  *exec.Cmd
	log  *kannelLog
	gone chan struct{}
}

// kannelRun starts a program, and stops it with the test.
func kannelRun(t *testing.T, stdin io.Reader, program string, args ...string) *kannelChild {
	t.Helper()
	c := &kannelChild{t: t, cmd: exec.Command(program, args...), log: newKannelLog(), gone: make(chan struct{})}
	c.cmd.Dir, c.cmd.Stdin, c.cmd.Stdout, c.cmd.Stderr = t.TempDir(), stdin, c.log, c.log
	if err := c.cmd.Start(); err != nil {
		t.Fatal(err)
	}
	go func() { _ = c.cmd.Wait(); close(c.gone) }()
	t.Cleanup(func() {
		c.stop()
		if t.Failed() {
			t.Logf("%s printed at last:\n%s", filepath.Base(program), c.log.tail())
		}
	})
	return c
}

// stop asks the program to end as a terminal does, and waits until it has.
func (c *kannelChild) stop() {
	_ = c.cmd.Process.Signal(syscall.SIGINT)
	select {
	case <-c.gone:
	case <-time.After(kannelPatience / 3):
		c.t.Errorf("%s did not end by itself", c.cmd.Path)
		_ = c.cmd.Process.Kill()
		<-c.gone
	}
}

// says waits until the program has printed some words.
func (c *kannelChild) says(words string) {
	c.t.Helper()
	ok := kannelAwait(c.log.signal, func() bool { return c.log.has(words) })
	if !ok {
		c.t.Fatalf("%s has not said %q", c.cmd.Path, words)
	}
}
