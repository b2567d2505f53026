package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"math/rand/v2"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/penstock/penstock/config"
)

// kannelPatience is how long anything here may take on a busy machine.
const kannelPatience = 60 * time.Second

// kannelPage is the operator's page. Kannel runs with its blocks as they stand,
// apart from ports, folders and the token.
const kannelPage = "../../docs/kannel.md"

// kannelBlock returns a fenced block of the page with words replaced: old, new.
// Each old word must stand there.
func kannelBlock(t *testing.T, language string, replace ...string) string {
	t.Helper()
	page, err := os.ReadFile(kannelPage)
	if err != nil {
		t.Fatal(err)
	}
	_, rest, found := strings.Cut(string(page), "```"+language+"\n")
	block, _, closed := strings.Cut(rest, "\n```")
	if !found || !closed {
		t.Fatalf("%s has no block of %s", kannelPage, language)
	}
	for i := 0; i < len(replace); i += 2 {
		if !strings.Contains(block, replace[i]) {
			t.Fatalf("the block %s of %s does not say %q", language, kannelPage, replace[i])
		}
	}
	return strings.NewReplacer(replace...).Replace(block) + "\n"
}

// kannelPrograms finds Kannel's programs. One that is missing fails the test, or
// skips it when PENSTOCK_TEST_SKIP_REAL=1 says so.
func kannelPrograms(t *testing.T) map[string]string {
	t.Helper()
	found := make(map[string]string)
	for name, folder := range map[string]string{"bearerbox": "/usr/sbin", "smsbox": "/usr/sbin", "fakesmsc": "/usr/lib/kannel/test"} {
		path, err := exec.LookPath(name)
		if err != nil {
			path, err = exec.LookPath(filepath.Join(folder, name))
		}
		switch {
		case err == nil:
			found[name] = path
		case os.Getenv("PENSTOCK_TEST_SKIP_REAL") == "1":
			t.Skipf("skipped: no %s (packages kannel, kannel-extras), and PENSTOCK_TEST_SKIP_REAL=1", name)
		default:
			t.Fatalf("no %s: install kannel and kannel-extras (PENSTOCK_TEST_SKIP_REAL=1 skips)", name)
		}
	}
	return found
}

// kannelAddress returns an address nobody listens on. The port is below those
// that connections take by themselves, so it stays free until it is used.
func kannelAddress(t *testing.T) string {
	t.Helper()
	for range 100 {
		l, err := net.Listen("tcp", fmt.Sprintf("127.0.0.1:%d", 15000+rand.IntN(15000)))
		if err == nil {
			addr := l.Addr().String()
			_ = l.Close()
			return addr
		}
	}
	t.Fatal("no free port")
	return ""
}

func kannelPort(t *testing.T) string {
	t.Helper()
	_, port, _ := net.SplitHostPort(kannelAddress(t))
	return port
}

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

// kannel is a running bearerbox and smsbox.
type kannel struct {
	t         *testing.T
	programs  map[string]string
	bearerbox *kannelChild
	smsbox    *kannelChild
	port      string // of the simulated carrier
}

// startKannel starts both with the page's configuration, posting to an address.
func startKannel(t *testing.T, addr, token string, replace ...string) *kannel {
	t.Helper()
	k := &kannel{t: t, programs: kannelPrograms(t), port: kannelPort(t)}
	file := filepath.Join(t.TempDir(), "kannel.conf")
	text := kannelBlock(t, "kannel", append(replace,
		"13000", kannelPort(t), "13001", kannelPort(t), "13013", kannelPort(t), "10000", k.port,
		"/var/spool/kannel", t.TempDir(), "/var/log/kannel", t.TempDir(), "TOKEN@127.0.0.1:8080", token+"@"+addr)...)
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	k.bearerbox = kannelRun(t, nil, k.programs["bearerbox"], file)
	k.bearerbox.says("Start-up done")
	k.smsbox = kannelRun(t, nil, k.programs["smsbox"], file)
	k.bearerbox.says("Client connected from <127.0.0.1>")
	return k
}

// carry hands messages to bearerbox as fakesmsc reads them, a line each.
func (k *kannel) carry(lines []string) *kannelChild {
	k.t.Helper()
	for _, line := range lines {
		if len(line) > 254 { // fakesmsc's buffer
			k.t.Fatalf("the line is too long: %q", line)
		}
	}
	stdin := filepath.Join(k.t.TempDir(), "messages")
	if err := os.WriteFile(stdin, []byte(strings.Join(lines, "\n")+"\n"), 0o600); err != nil {
		k.t.Fatal(err)
	}
	f, err := os.Open(stdin)
	if err != nil {
		k.t.Fatal(err)
	}
	defer func() { _ = f.Close() }()
	n := fmt.Sprint(len(lines))
	smsc := kannelRun(k.t, f, k.programs["fakesmsc"], "-H", "127.0.0.1", "-r", k.port, "-i", "0", "-m", n)
	smsc.says("fakesmsc: sent message " + n + "\n")
	return smsc
}

// end stops both in order; what was under way is over afterwards.
func (k *kannel) end() {
	k.smsbox.stop()
	k.bearerbox.stop()
}

// kannelGateway runs a gateway with embedded back ends and the page's inventory.
// The function it returns drains it; it may be called again.
func kannelGateway(t *testing.T, token, sink string) (addr string, stop func()) {
	t.Helper()
	dir, logs := t.TempDir(), newKannelLog()
	file := filepath.Join(dir, "inventory.yaml")
	text := kannelBlock(t, "yaml", "TOKEN", token, "http://127.0.0.1:9099", sink)
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	cfg, err := config.Load("", []string{
		"PENSTOCK_DATA_DIR=" + filepath.Join(dir, "data"), "PENSTOCK_INVENTORY=" + file,
		"PENSTOCK_LISTEN=127.0.0.1:0", "PENSTOCK_EGRESS_ALLOW=127.0.0.1/32",
	})
	if err != nil {
		t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	d, err := open(ctx, cfg, slog.New(slog.NewTextHandler(logs, nil)))
	if err != nil {
		cancel()
		t.Fatal(err)
	}
	listener, err := net.Listen("tcp", cfg.Listen)
	if err != nil {
		cancel()
		t.Fatal(errors.Join(err, errors.New(d.abandon())))
	}
	ended := make(chan error, 1)
	go func() { ended <- d.serve(ctx, listener) }()
	once := sync.OnceValue(func() error { cancel(); return <-ended })
	stop = func() {
		if err := once(); err != nil {
			t.Errorf("the gateway did not end well: %v", err)
		}
	}
	t.Cleanup(func() {
		stop()
		if t.Failed() {
			t.Logf("the gateway printed at last:\n%s", logs.tail())
		}
	})
	return listener.Addr().String(), stop
}
