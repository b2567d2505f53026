// Package operations tests the operation of the program end to end: processes, logs, metrics, dashboards,
// TLS and tracing.
package operations

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/penstock/penstock/cmd/penstock/e2e"
	"github.com/penstock/penstock/relay/relaytest"
)

func TestMain(m *testing.M) { e2e.Main(m) }

// TestGateway runs every suite of this folder.
func TestGateway(t *testing.T) {
	e2e.RunSuites(t, e2e.Suites{
		"operations": testOperations,
	}, "operations")
}

func testOperations(t *testing.T, s *e2e.Site) {
	g := e2e.Start(t, s, e2e.Fixture(t, "inventory.yaml"))
	t.Run("the gateway is alive", func(t *testing.T) { g.WithToken("").Get("/healthz").Expect(t, 200, `{"status": "alive"}`) })
	t.Run("readiness names each back end and its kind", func(t *testing.T) {
		want := map[string]string{"records": "embedded", "readings": "embedded", "mail": "simulated", "operator": "simulated", "lookup": "simulated", "carrier simulator": "simulated", "queue": "embedded", "gateways": "node", "journal cdr": "embedded", "journal uplink": "embedded", "journal sms": "embedded", "journal receipt": "embedded", "ledgers": "master key", "clock": ""}
		if s.Redis != nil {
			want["records"], want["queue"], want["readings"], want["mail"] = "postgresql", "redis", "influxdb", "smtp"
		}
		relaytest.Eventually(t, "every back end is ready", func() (any, bool) {
			status, r := g.Ready()
			ready := status == 200 && r.Status == "ready" && len(r.Backends) == len(want)
			for name, note := range want {
				b := r.Backends[name]
				ready = ready && b.Status == "ok" && strings.Contains(b.Note, note)
			}
			return r, ready
		})
	})
	t.Run("metrics parse, and count accepted and quarantined entries", func(t *testing.T) {
		e2e.PostWebhook(t, g.WithToken("acme-all-0123456"), "/webhooks/lorawan?decoder_id=lpp&event=up", e2e.Fixture(t, "chirpstack/up.json"))
		e2e.PostWebhook(t, g.WithToken("acme-all-0123456"), "/webhooks/lorawan", `{"nothing": 1}`)
		g.AwaitProcessed()
		relaytest.Eventually(t, "the metrics have the numbers of events", func() (any, bool) {
			m := e2e.Metrics(t, g.WithToken("").Get("/metrics").Body)
			return m, m[`penstock_entries_accepted_total{kind="uplink"}`] == 2 && m[`penstock_entries_processed_total{kind="uplink"}`] == 2 &&
				m[`penstock_entries_quarantined_total{kind="uplink"}`] == 1 && m[`penstock_entries_pending{kind="uplink"}`] == 0 && m["go_goroutines"] > 0
		})
	})
	t.Run("every answer has a request id of its own", func(t *testing.T) {
		resp, b := g.WithToken("").Get("/healthz"), g.WithToken("").Get("/nowhere")
		if resp.Header.Get("X-Request-Id") == "" || resp.Header.Get("X-Request-Id") == b.Header.Get("X-Request-Id") {
			t.Errorf("request ids = %q and %q, want two different ids", resp.Header.Get("X-Request-Id"), b.Header.Get("X-Request-Id"))
		}
	})
	t.Run("the log contains no tokens and bodies", func(t *testing.T) {
		for _, secret := range []string{"acme-all-0123456", e2e.AdminToken, "A2cBEARoeQ=="} {
			if strings.Contains(g.Logs.String(), secret) {
				t.Errorf("the log contains %s", secret)
			}
		}
	})
	t.Run("a second process on the same data directory is refused and exits 1", func(t *testing.T) {
		output, err := g.Command("serve").CombinedOutput()
		if code := e2e.ExitCode(err); code != 1 || !strings.Contains(string(output), g.DataDir()) || !strings.Contains(string(output), "in use") {
			t.Errorf("exit code = %d, output = %s\nwant 1 and the directory in use", code, output)
		}
		g.WithToken("").Get("/healthz").Expect(t, 200, `{"status": "alive"}`)
	})
	t.Run("commands", func(t *testing.T) { testCommands(t, g) })
}

func testCommands(t *testing.T, g *e2e.Gateway) {
	dir := t.TempDir()
	file := func(name, text string) string {
		path := filepath.Join(dir, name)
		relaytest.NoError(t, os.WriteFile(path, []byte(text), 0o600))
		return path
	}
	validFile := file("good.yaml", `{accounts: [{name: initech, tokens: [{token: initech-all-0123456}]}]}`)
	invalidFile := file("bad.yaml", `{accounts: [{name: initech, credit: "many"}]}`)
	config := file("config.yaml", "listen: 127.0.0.1:9191\ninventory: "+validFile+"\n")
	for _, tc := range []struct {
		name           string
		stdin          string
		args           []string
		code           int
		stdout, stderr string // parts of the output
	}{
		{"version prints the version", "", []string{"version"}, 0, "penstock ", ""},
		{"--version prints the version", "", []string{"--version"}, 0, "penstock ", ""},
		{"schema prints a JSON Schema", "", []string{"schema"}, 0, `"title": "Penstock inventory"`, ""},
		{"help succeeds", "", []string{"--help"}, 0, "Usage: penstock", ""},
		{"no command shows the help", "", nil, 0, "Usage: penstock", ""},
		{"an unknown command is a usage error", "", []string{"dance"}, 2, "", "penstock:"},
		{"an unknown flag is a usage error", "", []string{"serve", "--fast"}, 2, "", "penstock:"},
		{"a missing flag is a usage error", "", []string{"apply"}, 2, "", "penstock:"},
		{"healthcheck queries the gateway", "", []string{"healthcheck", "--url", g.URL()}, 0, "alive", ""},
		{"healthcheck accepts --server, like other commands", "", []string{"healthcheck", "--server", g.URL()}, 0, "alive", ""},
		{"healthcheck fails if no server listens", "", []string{"healthcheck", "--url", "http://127.0.0.1:1"}, 1, "", "penstock:"},
		{"check-config accepts a valid file", "", []string{"check-config", config}, 0, "ok", ""},
		{"check-config names every mistake", "", []string{"check-config", file("odd.yaml", "listen: 5\ncolour: red\n")}, 1, "", "colour"},
		{"check-config checks the inventory", "", []string{"check-config", file("deep.yaml", "inventory: "+invalidFile+"\n")}, 1, "", "accounts[0].credit"},
		{"check-config fails on a missing file", "", []string{"check-config", filepath.Join(dir, "none")}, 1, "", "none"},
		{"apply applies an inventory", "", []string{"apply", "-f", validFile, "--server", g.URL(), "--admin-token", e2e.AdminToken}, 0, `"initech"`, ""},
		{"apply reads the standard input", `{"accounts": [{"name": "initech"}]}`, []string{"apply", "-f", "-", "--server", g.URL(), "--admin-token", e2e.AdminToken}, 0, `"initech"`, ""},
		{"apply lists the mistakes by their path", "", []string{"apply", "-f", invalidFile, "--server", g.URL(), "--admin-token", e2e.AdminToken}, 1, "", "accounts[0].credit: expected"},
		{"apply fails with another token", "", []string{"apply", "-f", validFile, "--server", g.URL(), "--admin-token", "guess"}, 1, "", "401 Unauthorized: the gateway at "},
	} {
		t.Run(tc.name, func(t *testing.T) {
			got := e2e.RunCommand(nil, tc.stdin, tc.args...)
			if got.Code != tc.code || !strings.Contains(got.Stdout, tc.stdout) || !strings.Contains(got.Stderr, tc.stderr) {
				t.Errorf("exit code = %d, want %d\nstdout: %s\nstderr: %s", got.Code, tc.code, got.Stdout, got.Stderr)
			}
		})
	}
	t.Run("apply uses the server and the token of the settings", func(t *testing.T) {
		env := []string{"PENSTOCK_LISTEN=" + strings.TrimPrefix(g.URL(), "http://"), "PENSTOCK_ADMIN_TOKEN=" + e2e.AdminToken}
		e2e.RunCommand(env, "", "apply", "-f", validFile).Mentions(t, 0)
	})
	t.Run("serve fails on invalid settings with exit code 1", func(t *testing.T) {
		e2e.RunCommand([]string{"PENSTOCK_DELIVERY_SCHEDULE=soon"}, "", "serve").Mentions(t, 1, "PENSTOCK_DELIVERY_SCHEDULE")
	})
}
