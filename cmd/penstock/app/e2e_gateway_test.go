package app

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/penstock/penstock/config"
)

// adminToken is that of every gateway here.
const adminToken = "the-admin-token-0"

// patience is how long a condition may take to hold on a busy machine.
const patience = 2 * time.Minute

// gateway is a running program: in this process, or in one of its own.
type gateway struct {
	t    *testing.T
	site *site
	dir  string // holds the data directory and the inventory
	env  []string
	file string // its configuration; empty: none
	logs *transcript
	web  *http.Client

	signed sync.Map // callers with a session, by the user's name

	base  atomic.Pointer[string] // its URL, new after a restart
	stop  func() error           // of the one in this process
	child *exec.Cmd
	gone  chan struct{}
	// behind are the gateways that a balancer stands for; empty: it is one itself.
	behind []*gateway
	// bereft is one whose database has gone for good: it may have to leave outcomes
	// to be found out anew.
	bereft bool
}

// newGateway lays down a gateway that is not started yet. The inventory is YAML,
// settings are NAME=value.
func newGateway(t *testing.T, s *site, inventory string, settings ...string) *gateway {
	t.Helper()
	g := &gateway{t: t, site: s, dir: t.TempDir(), logs: &transcript{}, web: newWeb()}
	t.Cleanup(g.web.CloseIdleConnections)
	file := filepath.Join(g.dir, "inventory.yaml")
	if err := os.WriteFile(file, []byte(inventory), 0o600); err != nil {
		t.Fatal(err)
	}
	g.env = append(s.environ(),
		"PENSTOCK_LISTEN=127.0.0.1:0", "PENSTOCK_DATA_DIR="+g.data(), "PENSTOCK_INVENTORY="+file,
		"PENSTOCK_ADMIN_TOKEN="+adminToken, "PENSTOCK_EGRESS_ALLOW=127.0.0.0/8")
	g.env = override(g.env, settings)
	t.Cleanup(func() {
		if t.Failed() {
			t.Logf("the gateway's log:\n%s", g.logs.tail(60))
		}
		if strings.Contains(g.logs.String(), "DATA RACE") {
			t.Errorf("the gateway has a data race:\n%s", g.logs)
		}
	})
	return g
}

func (g *gateway) data() string { return filepath.Join(g.dir, "data") }

func (g *gateway) url() string { return *g.base.Load() }

// start runs a gateway in this process until the test ends; on a clustered site it
// runs several behind a balancer.
func start(t *testing.T, s *site, inventory string, settings ...string) *gateway {
	t.Helper()
	if s.clustered {
		return startCluster(t, s, inventory, settings...).front
	}
	g := newGateway(t, s, inventory, settings...)
	g.run()
	return g
}

func (g *gateway) run() {
	g.t.Helper()
	cfg, err := config.Load(g.file, g.env)
	if err != nil {
		g.t.Fatal(err)
	}
	ctx, cancel := context.WithCancel(context.Background())
	handler, _ := NewLog(g.logs, cfg.Log)
	d, err := Open(ctx, cfg, slog.New(handler), "test")
	if err != nil {
		cancel()
		g.t.Fatal(err)
	}
	listener, err := net.Listen("tcp", cfg.Listen)
	if err != nil {
		g.t.Fatal(errors.Join(err, errors.New(d.Abandon())))
	}
	g.base.Store(new("http://" + listener.Addr().String()))
	ended := make(chan error, 1)
	go func() { ended <- d.Serve(ctx, listener) }()
	g.stop = sync.OnceValue(func() error { cancel(); return <-ended })
	g.t.Cleanup(func() {
		if err := g.stop(); err != nil && !(g.bereft && strings.Contains(err.Error(), "outcomes not saved")) {
			g.t.Errorf("the gateway did not end well: %v", err)
		}
	})
}

// spawn runs the gateway in a process of its own and waits until it is ready.
func (g *gateway) spawn() {
	g.t.Helper()
	g.await(g.launch())
}

// await waits until a gateway that was launched says where it listens.
func (g *gateway) await(ready <-chan string) {
	g.t.Helper()
	select {
	case url := <-ready:
		g.base.Store(&url)
	case <-g.gone:
		g.t.Fatalf("the gateway ended at once:\n%s", g.logs.tail(30))
	case <-time.After(patience):
		g.t.Fatalf("the gateway is not ready:\n%s", g.logs.tail(30))
	}
}

// launch runs the gateway in a process of its own and returns where its URL
// will be told.
func (g *gateway) launch() <-chan string {
	g.t.Helper()
	g.child = g.command("serve", "--config", g.file)
	ready := &watcher{to: g.logs, found: make(chan string, 1)}
	g.child.Stdout, g.child.Stderr = g.logs, ready
	gone := make(chan struct{})
	g.gone = gone
	if err := g.child.Start(); err != nil {
		g.t.Fatal(err)
	}
	g.t.Cleanup(g.kill)
	go func(cmd *exec.Cmd) { _ = cmd.Wait(); close(gone) }(g.child)
	return ready.found
}

// command is the program in a process of its own, with the gateway's settings.
func (g *gateway) command(args ...string) *exec.Cmd {
	cmd := exec.Command(os.Args[0], args...)
	cmd.Env = append(bareEnvironment(), g.env...)
	cmd.Dir = g.dir
	return cmd
}

// bareEnvironment is this process's without settings of the program.
func bareEnvironment() []string {
	env := []string{actAsProgram + "=1"}
	for _, entry := range os.Environ() {
		if !strings.HasPrefix(entry, "PENSTOCK_") {
			env = append(env, entry)
		}
	}
	return env
}

// kill ends the process at once, as kill -9 does.
func (g *gateway) kill() {
	_ = g.child.Process.Kill()
	<-g.gone
}

// terminate asks the process to end and returns its exit code.
func (g *gateway) terminate() int {
	g.t.Helper()
	if err := g.child.Process.Signal(syscall.SIGTERM); err != nil {
		g.t.Fatal(err)
	}
	select {
	case <-g.gone:
	case <-time.After(patience):
		g.t.Fatal("the gateway does not end")
	}
	return g.child.ProcessState.ExitCode()
}

// eventually waits until a condition holds. It says what it last saw if not.
func eventually(t testing.TB, what string, holds func() (seen any, ok bool)) {
	t.Helper()
	tick := time.NewTicker(10 * time.Millisecond)
	defer tick.Stop()
	late := time.After(patience)
	for {
		seen, ok := holds()
		if ok {
			return
		}
		select {
		case <-tick.C:
		case <-late:
			t.Fatalf("waited in vain: %s; last seen: %v", what, seen)
		}
	}
}

// transcript is what a gateway has printed.
type transcript struct {
	mu   sync.Mutex
	text bytes.Buffer
}

func (l *transcript) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.Write(p)
}

// String returns all of it.
func (l *transcript) String() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.text.String()
}

func (l *transcript) tail(lines int) string {
	all := strings.Split(strings.TrimSpace(l.String()), "\n")
	if cut := len(all) - lines; cut > 0 {
		all = append([]string{fmt.Sprintf("… %d lines before", cut)}, all[cut:]...)
	}
	return strings.Join(all, "\n")
}

// watcher finds in what a process prints where it listens.
type watcher struct {
	to    *transcript
	seen  []byte
	found chan string
	told  bool
}

func (w *watcher) Write(p []byte) (int, error) {
	n, err := w.to.Write(p)
	if w.told {
		return n, err
	}
	w.seen = append(w.seen, p...)
	if m := regexp.MustCompile(`penstock is listening"(?: listen=|,"listen":")([^" ]+)[" ]`).FindSubmatch(w.seen); m != nil {
		w.told, w.seen = true, nil
		w.found <- string(m[1])
	}
	return n, err
}

// override replaces settings of the same name; an empty one is taken away.
func override(env, settings []string) []string {
	for _, setting := range settings {
		name, value, _ := strings.Cut(setting, "=")
		env = slices.DeleteFunc(env, func(old string) bool { return strings.HasPrefix(old, name+"=") })
		if value != "" {
			env = append(env, setting)
		}
	}
	return env
}

// exitCode is that of a process that has ended.
func exitCode(err error) int {
	if failed, ok := errors.AsType[*exec.ExitError](err); ok {
		return failed.ExitCode()
	}
	if err != nil {
		return -1
	}
	return 0
}
