package app

import (
	"bytes"
	"context"
	"encoding/json"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"
)

// readiness is the answer of /readyz.
type readiness struct {
	Status   string
	Backends map[string]struct{ Status, Note, Error string }
}

func (g *gateway) ready() (int, readiness) {
	g.t.Helper()
	a := g.admin().get("/readyz")
	var r readiness
	if err := json.Unmarshal([]byte(a.body), &r); err != nil {
		g.t.Fatalf("readyz: %v in %s", err, a.body)
	}
	return a.status, r
}

func testOperations(t *testing.T, s *site) {
	g := start(t, s, fixture(t, "inventory.yaml"))
	t.Run("it is alive", func(t *testing.T) { g.as("").get("/healthz").is(t, 200, `{"status": "alive"}`) })
	t.Run("readiness names each back end and its kind", func(t *testing.T) {
		status, r := g.ready()
		want := map[string]string{"records": "embedded", "readings": "embedded", "mail": "simulated", "operator": "simulated", "lookup": "simulated", "carrier simulator": "simulated", "queue": "embedded", "gateways": "node", "journal cdr": "embedded", "journal uplink": "embedded", "journal sms": "embedded", "journal receipt": "embedded", "ledgers": "master key", "clock": ""}
		if s.redis != nil {
			want["records"], want["queue"], want["readings"], want["mail"] = "postgresql", "redis", "influxdb", "smtp"
		}
		if status != 200 || r.Status != "ready" || len(r.Backends) != len(want) {
			t.Errorf("%d %+v", status, r)
		}
		for name, note := range want {
			if b := r.Backends[name]; b.Status != "ok" || !strings.Contains(b.Note, note) {
				t.Errorf("%s: %+v, want ok and %s", name, b, note)
			}
		}
	})
	t.Run("metrics parse and count what was accepted and quarantined", func(t *testing.T) {
		hook(t, g.as("acme-all-0123456"), "/webhooks/lorawan?decoder_id=lpp&event=up", fixture(t, "chirpstack/up.json"))
		hook(t, g.as("acme-all-0123456"), "/webhooks/lorawan", `{"nothing": 1}`)
		g.settled()
		eventually(t, "the numbers are right", func() (any, bool) {
			m := metrics(t, g.as("").get("/metrics").body)
			return m, m[`penstock_accepted_total{kind="uplink"}`] == 2 && m[`penstock_processed_total{kind="uplink"}`] == 2 &&
				m[`penstock_quarantined_total{kind="uplink"}`] == 1 && m[`penstock_lag{kind="uplink"}`] == 0 && m["go_goroutines"] > 0
		})
	})
	t.Run("every answer has a request id of its own", func(t *testing.T) {
		a, b := g.as("").get("/healthz"), g.as("").get("/nowhere")
		if a.header.Get("X-Request-Id") == "" || a.header.Get("X-Request-Id") == b.header.Get("X-Request-Id") {
			t.Errorf("ids %q and %q", a.header.Get("X-Request-Id"), b.header.Get("X-Request-Id"))
		}
	})
	t.Run("tokens and bodies reach no log", func(t *testing.T) {
		for _, secret := range []string{"acme-all-0123456", adminToken, "A2cBEARoeQ=="} {
			if strings.Contains(g.logs.String(), secret) {
				t.Errorf("the log holds %s", secret)
			}
		}
	})
	t.Run("a second process on the same data directory is refused and exits 1", func(t *testing.T) {
		out, err := g.command("serve").CombinedOutput()
		if code := exitCode(err); code != 1 || !strings.Contains(string(out), g.data()) || !strings.Contains(string(out), "in use") {
			t.Errorf("exit %d:\n%s", code, out)
		}
		g.as("").get("/healthz").is(t, 200, `{"status": "alive"}`)
	})
	t.Run("commands", func(t *testing.T) { testCommands(t, g) })
}

// metrics reads the text format of Prometheus strictly.
func metrics(t *testing.T, text string) map[string]float64 {
	t.Helper()
	line := regexp.MustCompile(`^([a-zA-Z_:][a-zA-Z0-9_:]*(?:\{[a-zA-Z_]\w*="(?:[^"\\]|\\.)*"(?:,[a-zA-Z_]\w*="(?:[^"\\]|\\.)*")*\})?) (\S+)$`)
	found := make(map[string]float64)
	for l := range strings.Lines(text) {
		l = strings.TrimSuffix(l, "\n")
		if strings.HasPrefix(l, "# HELP ") || strings.HasPrefix(l, "# TYPE ") {
			continue
		}
		m := line.FindStringSubmatch(l)
		if m == nil {
			t.Fatalf("no metric: %q", l)
		}
		v, err := strconv.ParseFloat(m[2], 64)
		if err != nil {
			t.Fatalf("no number: %q", l)
		}
		found[m[1]] = v
	}
	return found
}

// ran is the end of a command.
type ran struct {
	code     int
	out, err string
}

// command runs one command of the program in this process.
func command(env []string, stdin string, args ...string) ran {
	var out, errs bytes.Buffer
	code := Run(args, Environment{context.Background(), env, strings.NewReader(stdin), &out, &errs, "test"})
	return ran{code, out.String(), errs.String()}
}

func testCommands(t *testing.T, g *gateway) {
	dir := t.TempDir()
	file := func(name, text string) string {
		path := filepath.Join(dir, name)
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		return path
	}
	good := file("good.yaml", `{accounts: [{name: initech, tokens: [{token: initech-all-0123456}]}]}`)
	bad := file("bad.yaml", `{accounts: [{name: initech, credit: "many"}]}`)
	config := file("config.yaml", "listen: 127.0.0.1:9191\ninventory: "+good+"\n")
	for _, tc := range []struct {
		name     string
		stdin    string
		args     []string
		code     int
		out, err string // parts
	}{
		{"version prints itself", "", []string{"version"}, 0, "penstock ", ""},
		{"--version is the same", "", []string{"--version"}, 0, "penstock ", ""},
		{"schema prints a JSON Schema", "", []string{"schema"}, 0, `"title": "Penstock inventory"`, ""},
		{"help is no failure", "", []string{"--help"}, 0, "Usage: penstock", ""},
		{"no command shows the help", "", nil, 0, "Usage: penstock", ""},
		{"an unknown command is a mistake of usage", "", []string{"dance"}, 2, "", "penstock:"},
		{"an unknown flag is a mistake of usage", "", []string{"serve", "--fast"}, 2, "", "penstock:"},
		{"a missing flag is a mistake of usage", "", []string{"apply"}, 2, "", "penstock:"},
		{"healthcheck asks the gateway", "", []string{"healthcheck", "--url", g.url()}, 0, "alive", ""},
		{"healthcheck names the gateway as the others do", "", []string{"healthcheck", "--server", g.url()}, 0, "alive", ""},
		{"healthcheck fails where nobody listens", "", []string{"healthcheck", "--url", "http://127.0.0.1:1"}, 1, "", "penstock:"},
		{"check-config takes a good file", "", []string{"check-config", config}, 0, "ok", ""},
		{"check-config names every mistake", "", []string{"check-config", file("odd.yaml", "listen: 5\ncolour: red\n")}, 1, "", "colour"},
		{"check-config looks into the inventory", "", []string{"check-config", file("deep.yaml", "inventory: "+bad+"\n")}, 1, "", "accounts[0].credit"},
		{"check-config fails on a file that is not there", "", []string{"check-config", filepath.Join(dir, "none")}, 1, "", "none"},
		{"apply puts an inventory", "", []string{"apply", "-f", good, "--server", g.url(), "--admin-token", adminToken}, 0, `"initech"`, ""},
		{"apply reads the standard input", `{"accounts": [{"name": "initech"}]}`, []string{"apply", "-f", "-", "--server", g.url(), "--admin-token", adminToken}, 0, `"initech"`, ""},
		{"apply lists the mistakes by their path", "", []string{"apply", "-f", bad, "--server", g.url(), "--admin-token", adminToken}, 1, "", "accounts[0].credit: expected"},
		{"apply fails with another token", "", []string{"apply", "-f", good, "--server", g.url(), "--admin-token", "guess"}, 1, "", "Unauthenticated."},
	} {
		t.Run(tc.name, func(t *testing.T) {
			got := command(nil, tc.stdin, tc.args...)
			if got.code != tc.code || !strings.Contains(got.out, tc.out) || !strings.Contains(got.err, tc.err) {
				t.Errorf("exit %d, want %d\nout: %s\nerr: %s", got.code, tc.code, got.out, got.err)
			}
		})
	}
	t.Run("apply finds server and token in the settings", func(t *testing.T) {
		env := []string{"PENSTOCK_LISTEN=" + strings.TrimPrefix(g.url(), "http://"), "PENSTOCK_ADMIN_TOKEN=" + adminToken}
		if got := command(env, "", "apply", "-f", good); got.code != 0 {
			t.Errorf("exit %d: %s", got.code, got.err)
		}
	})
	t.Run("serve fails on settings that make no sense, with exit 1", func(t *testing.T) {
		got := command([]string{"PENSTOCK_DELIVERY_SCHEDULE=soon"}, "", "serve")
		if got.code != 1 || !strings.Contains(got.err, "PENSTOCK_DELIVERY_SCHEDULE") {
			t.Errorf("exit %d: %s", got.code, got.err)
		}
	})
}
