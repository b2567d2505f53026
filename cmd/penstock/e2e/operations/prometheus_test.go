package operations

import (
	"encoding/json"
	"fmt"
	"net/http"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/penstock/penstock/cmd/penstock/e2e"
	"github.com/penstock/penstock/relay/porttest"
	"github.com/penstock/penstock/relay/relaytest"
)

// prometheusTool returns the path of a program of Debian's package prometheus. If the program is missing,
// it fails the test, or skips the test if PENSTOCK_TEST_SKIP_REAL=1.
func prometheusTool(t *testing.T, name string) string {
	t.Helper()
	path, err := exec.LookPath(name)
	switch {
	case err == nil:
	case os.Getenv("PENSTOCK_TEST_SKIP_REAL") == "1":
		t.Skipf("skipped: %v, and PENSTOCK_TEST_SKIP_REAL=1", err)
	default:
		t.Fatalf("%v: make deps installs it, PENSTOCK_TEST_SKIP_REAL=1 skips the test", err)
	}
	return path
}

// TestAlertRules runs the unit tests of the alert rules, and checks that every alert has a test and a
// section in the runbook.
func TestAlertRules(t *testing.T) {
	t.Parallel()
	tool, dir := prometheusTool(t, "promtool"), filepath.Join(e2e.Root(t), "deploy", "prometheus")
	for _, args := range [][]string{{"check", "rules", "alerts.yaml"}, {"check", "config", "prometheus.yaml"}, {"test", "rules", "alerts_test.yaml"}} {
		c := exec.CommandContext(t.Context(), tool, args...)
		c.Dir = dir
		if output, err := c.CombinedOutput(); err != nil {
			t.Errorf("promtool %s: %v\n%s", strings.Join(args, " "), err, output)
		}
	}
	tests := e2e.RepositoryFile(t, "deploy/prometheus/alerts_test.yaml")
	alerts, sections := 0, 0
	for line := range strings.Lines(e2e.RepositoryFile(t, "deploy/prometheus/alerts.yaml")) {
		if name, ok := strings.CutPrefix(strings.TrimSpace(line), "- alert: "); ok {
			if alerts++; !strings.Contains(tests, name) {
				t.Errorf("%s has no test", name)
			}
		}
		if _, link, ok := strings.Cut(strings.TrimSpace(line), "runbook_url: https://github.com/penstock/penstock/blob/main/"); ok {
			sections++
			file, anchor, _ := strings.Cut(link, "#")
			heading := "# " + strings.ReplaceAll(anchor, "-", " ")
			if page := e2e.RepositoryFile(t, file); !strings.Contains(strings.ToLower(page), heading) {
				t.Errorf("%s has no section %s", file, anchor)
			}
		}
	}
	if alerts == 0 || sections != alerts {
		t.Errorf("alerts = %d, links to their sections = %d, want one for each alert", alerts, sections)
	}
}

// TestEveryPrometheusQueryHasAResult runs the queries of the dashboards for Prometheus on a Prometheus that
// scrapes a gateway. Every query of the dashboard gateway must have a result.
func TestEveryPrometheusQueryHasAResult(t *testing.T) {
	t.Parallel()
	program := prometheusTool(t, "prometheus")
	sink := e2e.NewSink(t, nil)
	g := e2e.Start(t, e2e.Embedded(), e2e.Fixture(t, "relays.yaml", "SINK", sink.URL, "MAILBOX", "box@example.com"))
	rules, err := filepath.Abs(filepath.Join(e2e.Root(t), "deploy", "prometheus", "alerts.yaml"))
	relaytest.NoError(t, err)
	dir, address := t.TempDir(), porttest.Address(t)
	file := filepath.Join(dir, "prometheus.yaml")
	relaytest.NoError(t, os.WriteFile(file, fmt.Appendf(nil, "global: {scrape_interval: 1s}\nrule_files: [%q]\nscrape_configs: [{job_name: penstock, static_configs: [{targets: [%q]}]}]\n",
		rules, strings.TrimPrefix(g.URL(), "http://")), 0o600))
	child := exec.CommandContext(t.Context(), program, "--config.file="+file, "--storage.tsdb.path="+dir, "--web.listen-address="+address)
	logs := &e2e.Transcript{}
	child.Stdout, child.Stderr = logs, logs
	relaytest.NoError(t, child.Start())
	t.Cleanup(func() { _ = child.Process.Kill(); _ = child.Wait() })

	acme := g.WithToken("acme-all-0123456")
	n := 0
	query := func(expr string) (rows int, problem string) {
		resp, err := http.Get("http://" + address + "/api/v1/query?query=" + url.QueryEscape(expr)) //nolint:noctx // the answer is local
		if err != nil {
			return 0, err.Error()
		}
		defer resp.Body.Close()
		var answer struct {
			Error string
			Data  struct{ Result []json.RawMessage }
		}
		if err := json.NewDecoder(resp.Body).Decode(&answer); err != nil {
			return 0, err.Error()
		}
		return len(answer.Data.Result), answer.Error
	}
	panels := shippedDashboard(t, "gateway").Panels
	required := len(panels) // the other queries need carriers, SIMs and rules: they must not fail, but may have no result
	for _, name := range []string{"sms", "sims", "alarms", "deliveries"} {
		panels = append(panels, shippedDashboard(t, name).Panels...)
	}
	variables := strings.NewReplacer("$__rate_interval", "1m", "$__range", "1m", "$account", ".*", "$carrier", ".*", "$host", ".*")
	for i, p := range panels {
		for _, q := range p.Targets {
			expr := variables.Replace(q.Expr)
			relaytest.Eventually(t, p.Title+": "+expr, func() (any, bool) {
				n++
				e2e.PostWebhook(t, acme, "/webhooks/lpwan", fmt.Sprintf(`{"deviceId": "watched", "temperature": %d}`, n))
				acme.PostInboundText(fmt.Sprint("watched-", n), "447800015555", "watched")
				rows, problem := query(expr)
				return problem + logs.Tail(3), rows > 0 || i >= required && problem == ""
			})
		}
	}
}
