package e2e

import (
	"context"
	"encoding/json"
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
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/penstock/penstock/cmd/penstock/app"
	"github.com/penstock/penstock/config"
	"github.com/penstock/penstock/relay/relaytest"
)

// AwaitNode waits until the gateway has registered and returns its node.
func (g *Gateway) AwaitNode() (node string) {
	g.T.Helper()
	relaytest.Eventually(g.T, "the gateway is registered", func() (any, bool) {
		var list struct{ Data []struct{ Node string } }
		resp := g.Admin().Get("/admin/gateways")
		resp.Decode(g.T, &list)
		if len(list.Data) > 0 {
			node = list.Data[0].Node
		}
		return resp, node != ""
	})
	return node
}

// Open opens the gateway in this process. Serve serves with the opened gateway.
func (g *Gateway) Open() (*app.Gateway, error) {
	cfg, err := config.Load(g.ConfigFile, g.Env)
	if err != nil {
		return nil, err
	}
	handler, _ := app.NewLog(g.Logs, cfg.Log)
	return app.Open(context.Background(), cfg, slog.New(handler), "test")
}

// Serve serves with an opened gateway until Stop is called or the test ends. It does not
// check whether the gateway ends with an error.
func (g *Gateway) Serve(opened *app.Gateway) {
	g.T.Helper()
	listener, err := net.Listen("tcp", g.Setting("PENSTOCK_LISTEN"))
	if err != nil {
		g.T.Fatal(errors.Join(err, errors.New(opened.Abandon())))
	}
	g.base.Store(new("http://" + listener.Addr().String()))
	ctx, cancel := context.WithCancel(context.Background())
	result := make(chan error, 1)
	go func() { result <- opened.Serve(ctx, listener) }()
	g.Stop = sync.OnceValue(func() error { cancel(); return <-result })
	g.T.Cleanup(func() { _ = g.Stop() }) // a damaged gateway may end with an error
}

// AdminToken is the admin token of every gateway of the tests.
const AdminToken = "the-admin-token-0"

// Gateway is a gateway that runs in this process or in a process of its own.
type Gateway struct {
	T          *testing.T
	Site       *Site
	Dir        string // contains the data directory and the inventory
	Env        []string
	ConfigFile string // path of the configuration file; empty if there is none
	Logs       *Transcript
	HTTP       *http.Client

	Sessions sync.Map // clients with a session, by the user's name

	base    atomic.Pointer[string] // URL of the gateway, which a restart changes
	Stop    func() error           // stops the gateway that Serve or Run started
	Process *exec.Cmd
	exited  chan struct{}
	// Members are the gateways behind the balancer if this is the front of a cluster.
	Members []*Gateway
	// UnsavedOutcomes allows the gateway to stop without saving the outcomes of deliveries, because
	// the test has stopped or emptied its database.
	UnsavedOutcomes bool
}

// NewGateway prepares a gateway: its directories, its inventory (YAML) and its settings
// (NAME=value). Run or Spawn starts it.
func NewGateway(t *testing.T, s *Site, inventory string, settings ...string) *Gateway {
	t.Helper()
	g := &Gateway{T: t, Site: s, Dir: t.TempDir(), Logs: &Transcript{}, HTTP: newHTTPClient()}
	t.Cleanup(g.HTTP.CloseIdleConnections)
	file := filepath.Join(g.Dir, "inventory.yaml")
	relaytest.NoError(t, os.WriteFile(file, []byte(inventory), 0o600))
	g.Env = append(s.environ(t),
		"PENSTOCK_LISTEN=127.0.0.1:0", "PENSTOCK_DATA_DIR="+g.DataDir(), "PENSTOCK_INVENTORY="+file,
		"PENSTOCK_INBOUND_ANSWER_WAIT=30s", "PENSTOCK_ADMIN_TOKEN="+AdminToken, "PENSTOCK_EGRESS_ALLOW=127.0.0.0/8")
	g.Env = OverrideSettings(g.Env, settings)
	t.Cleanup(func() {
		if t.Failed() {
			t.Logf("the gateway's log:\n%s", g.Logs.Tail(60))
		}
		if strings.Contains(g.Logs.String(), "DATA RACE") {
			t.Errorf("the gateway has a data race:\n%s", g.Logs)
		}
	})
	return g
}

// DataDir returns the data directory of the gateway.
func (g *Gateway) DataDir() string { return filepath.Join(g.Dir, "data") }

// URL returns the address of the running gateway; a restart changes it.
func (g *Gateway) URL() string { return *g.base.Load() }

// Start runs a gateway in this process until the test ends. On a clustered site it runs a
// cluster and returns its front.
func Start(t *testing.T, s *Site, inventory string, settings ...string) *Gateway {
	t.Helper()
	if s.clustered {
		return StartCluster(t, s, inventory, settings...).Front
	}
	g := NewGateway(t, s, inventory, settings...)
	g.Run()
	return g
}

// Run runs the gateway in this process until the test ends.
func (g *Gateway) Run() {
	g.T.Helper()
	g.Serve(relaytest.Must(g.Open())(g.T))
	g.T.Cleanup(func() {
		if err := g.Stop(); err != nil && !(g.UnsavedOutcomes && strings.Contains(err.Error(), "outcomes not saved")) {
			g.T.Errorf("the gateway stopped with an error: %v", err)
		}
	})
}

// Spawn runs the gateway in a process of its own and waits until it is ready.
func (g *Gateway) Spawn() {
	g.T.Helper()
	g.awaitAddress(g.Launch())
}

// awaitAddress waits until a launched gateway prints its URL.
func (g *Gateway) awaitAddress(ready <-chan string) {
	g.T.Helper()
	select {
	case url := <-ready:
		g.base.Store(&url)
	case <-g.exited:
		g.T.Fatalf("the gateway exited during its start:\n%s", g.Logs.Tail(30))
	case <-time.After(relaytest.Patience):
		g.T.Fatalf("the gateway is not ready:\n%s", g.Logs.Tail(30))
	}
}

// Launch starts the gateway in a process of its own and returns a channel that receives the
// gateway's URL.
func (g *Gateway) Launch() <-chan string {
	g.T.Helper()
	g.Process = g.Command("serve", "--config", g.ConfigFile)
	ready := &AddressWatcher{Log: g.Logs, URL: make(chan string, 1)}
	g.Process.Stdout, g.Process.Stderr = g.Logs, ready
	exited := make(chan struct{})
	g.exited = exited
	relaytest.NoError(g.T, g.Process.Start())
	g.T.Cleanup(g.Kill)
	go func(cmd *exec.Cmd) { _ = cmd.Wait(); close(exited) }(g.Process)
	return ready.URL
}

// Command returns a command that runs the program with the gateway's settings.
func (g *Gateway) Command(args ...string) *exec.Cmd {
	cmd := exec.Command(os.Args[0], args...)
	cmd.Env = append(BareEnvironment(), g.Env...)
	cmd.Dir = g.Dir
	return cmd
}

// BareEnvironment returns the environment of this process without the settings of the
// program, and with ActAsProgram.
func BareEnvironment() []string {
	env := []string{ActAsProgram + "=1"}
	for _, entry := range os.Environ() {
		if !strings.HasPrefix(entry, "PENSTOCK_") {
			env = append(env, entry)
		}
	}
	return env
}

// Kill sends SIGKILL and waits for the end of the process.
func (g *Gateway) Kill() {
	_ = g.Process.Process.Kill()
	<-g.exited
}

// Terminate sends SIGTERM and returns the exit code of the process.
func (g *Gateway) Terminate() int {
	g.T.Helper()
	relaytest.NoError(g.T, g.Process.Process.Signal(syscall.SIGTERM))
	select {
	case <-g.exited:
	case <-time.After(relaytest.Patience):
		g.T.Fatal("timeout: the gateway did not exit after SIGTERM")
	}
	return g.Process.ProcessState.ExitCode()
}

// TerminateCleanly terminates the process and fails the test unless its exit code is 0.
func (g *Gateway) TerminateCleanly() {
	g.T.Helper()
	if code := g.Terminate(); code != 0 {
		g.T.Errorf("exit code of the gateway = %d, want 0", code)
	}
}

// Transcript collects the output of a gateway. It is safe for concurrent use.
type Transcript struct{ relaytest.Buffer }

// Tail returns the last lines of the output, preceded by the number of earlier lines.
func (t *Transcript) Tail(lines int) string {
	output := strings.Split(strings.TrimSpace(t.String()), "\n")
	if cut := len(output) - lines; cut > 0 {
		output = append([]string{fmt.Sprintf("… %d earlier lines", cut)}, output[cut:]...)
	}
	return strings.Join(output, "\n")
}

// AddressWatcher finds the URL of a gateway in its output.
type AddressWatcher struct {
	Log       *Transcript
	buf       []byte
	URL       chan string
	announced bool
}

// Write copies the output to Log, and sends the URL of the gateway to URL after the gateway has printed
// it.
func (w *AddressWatcher) Write(p []byte) (int, error) {
	n, err := w.Log.Write(p)
	if w.announced {
		return n, err
	}
	w.buf = append(w.buf, p...)
	if m := regexp.MustCompile(`penstock is listening"(?: listen=|,"listen":")([^" ]+)[" ]`).FindSubmatch(w.buf); m != nil {
		w.announced, w.buf = true, nil
		w.URL <- string(m[1])
	}
	return n, err
}

// Setting returns a setting in the environment of the gateway, or "".
func (g *Gateway) Setting(name string) string {
	for _, entry := range g.Env {
		if value, ok := strings.CutPrefix(entry, name+"="); ok {
			return value
		}
	}
	return ""
}

// OverrideSettings replaces settings of the same name; an empty value removes the setting.
func OverrideSettings(env, settings []string) []string {
	for _, setting := range settings {
		name, value, _ := strings.Cut(setting, "=")
		env = slices.DeleteFunc(env, func(old string) bool { return strings.HasPrefix(old, name+"=") })
		if value != "" {
			env = append(env, setting)
		}
	}
	return env
}

// Readiness is the answer of /readyz.
type Readiness struct {
	Status   string
	Backends map[string]struct{ Status, Note, Error string }
}

// Ready returns the status and the answer of /readyz.
func (g *Gateway) Ready() (int, Readiness) {
	g.T.Helper()
	resp := g.Admin().Get("/readyz")
	var r Readiness
	if err := json.Unmarshal([]byte(resp.Body), &r); err != nil {
		g.T.Fatalf("readyz: %v in %s", err, resp.Body)
	}
	return resp.Status, r
}

// AwaitReady waits until the gateway is ready.
func (g *Gateway) AwaitReady() {
	g.T.Helper()
	relaytest.Eventually(g.T, "the gateway is ready", func() (any, bool) { status, r := g.Ready(); return r, status == http.StatusOK })
}

// Configure writes the configuration file of a gateway that has not been started.
func (g *Gateway) Configure(text string) {
	g.T.Helper()
	g.ConfigFile = filepath.Join(g.Dir, "penstock.yaml")
	relaytest.NoError(g.T, os.WriteFile(g.ConfigFile, []byte(text), 0o600))
}

// Memory returns a field of the status of the process in KiB: VmRSS is the resident memory, VmHWM is
// its peak.
func (g *Gateway) Memory(name string) int {
	g.T.Helper()
	status := relaytest.Must(os.ReadFile(fmt.Sprintf("/proc/%d/status", g.Process.Process.Pid)))(g.T)
	m := regexp.MustCompile(`(?m)^` + name + `:\s+(\d+) kB$`).FindSubmatch(status)
	if m == nil {
		g.T.Fatalf("no %s in\n%s", name, status)
	}
	return relaytest.Must(strconv.Atoi(string(m[1])))(g.T)
}
