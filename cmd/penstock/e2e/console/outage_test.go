package console

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/chromedp/chromedp"
	"github.com/chromedp/chromedp/kb"

	"github.com/penstock/penstock/cmd/penstock/e2e"
	"github.com/penstock/penstock/relay/relaytest"
)

// TestConsoleInAnOutage stops each back end while the operator looks: the page says
// which is down and since when, the token still signs in, and what can be read is.
func TestConsoleInAnOutage(t *testing.T) {
	t.Parallel()
	for _, tc := range []struct {
		name, backend string
		stop          func(s *e2e.Site)
		start         func(t *testing.T, s *e2e.Site)
		shows         []string // of the events' page
	}{
		{
			"PostgreSQL", "records", func(s *e2e.Site) { s.Postgres.Kill() }, func(_ *testing.T, s *e2e.Site) { s.Postgres.Start() },
			[]string{"The database does not answer", "unknown", "shed"},
		},
		{"Redis", "queue", func(s *e2e.Site) { s.Redis.Stop() }, func(_ *testing.T, s *e2e.Site) { s.Redis.Restart() }, []string{"done", "shed"}},
		{"InfluxDB", "readings", func(s *e2e.Site) { s.Influx.Stop() }, func(t *testing.T, s *e2e.Site) { s.Influx.Restart(t) }, []string{"done", "shed"}},
	} {
		t.Run(tc.name, func(t *testing.T) {
			s := e2e.RealSite(t)
			g := e2e.Start(t, s, e2e.Fixture(t, "inventory.yaml"))
			g.As("acme-all-0123456").Post("/webhooks/generic/shed?decoder_id=sent", `{"temperature":21}`).Mentions(t, 200, "21")
			g.AwaitProcessed()
			b := e2e.NewBrowser(t)
			b.Do(chromedp.Navigate(g.URL() + "/console"))
			b.Write("#token", e2e.AdminToken+kb.Enter)
			b.AwaitText("Back ends ready", "Came in, per minute", "None. An endpoint that fails ten times in a row")

			tc.stop(s)
			b.AwaitText(tc.backend, "is down since", "The gateway goes on accepting", "Back ends not ready")
			if tc.backend != "readings" {
				b.AwaitText("Stale: not refreshed since")
			}
			b.Press("Sign out")
			b.Write("#token", e2e.AdminToken+kb.Enter)
			b.AwaitText("is down since", "Came in, per minute")
			b.Press("Events")
			b.AwaitText(tc.shows...)

			tc.start(t, s)
			b.Press("Overview")
			b.AwaitText("Back ends ready", "Last error since the start")
			relaytest.Eventually(t, "nothing is stale any more", func() (any, bool) {
				return b.Text(), !b.Holds(`document.querySelector(".stale, .outage") !== null`)
			})
			if wrong := b.Complaints("status of 503"); len(wrong) > 0 {
				t.Errorf("the browser complains: %q", wrong)
			}
		})
	}
}

// TestConsoleIsLive sees a row appear in a list and traffic in a chart, also after a
// restart, from an empty data directory.
func TestConsoleIsLive(t *testing.T) {
	t.Parallel()
	g := e2e.NewGateway(t, &e2e.Site{Name: "embedded"}, e2e.Fixture(t, "inventory.yaml"))
	g.Spawn()
	b := e2e.NewBrowser(t)
	b.Do(chromedp.Navigate(g.URL() + "/console#events"))
	b.Write("#token", e2e.AdminToken+kb.Enter)
	b.AwaitText("No event matches.", "Live: asked every 5 seconds")
	g.As("acme-all-0123456").Post("/webhooks/generic/shed?decoder_id=sent", `{"temperature":21}`).Mentions(t, 200, "21")
	b.AwaitText("uplink of shed", "acme (1)", "new")
	b.Press("Overview")
	b.AwaitText("Came in, per minute", "Counted by this gateway")
	relaytest.Eventually(t, "the frame is in the chart's data", func() (any, bool) { return traffic(g, "uplink"), traffic(g, "uplink") == 1 })
	if !b.Holds(`document.querySelectorAll("figure.chart canvas").length === 3`) {
		t.Error("the charts are not drawn")
	}
	b.Do(chromedp.Navigate("about:blank"))
	g.Kill()
	g.Spawn()
	if n := traffic(g, "uplink"); n != 1 {
		t.Errorf("after a kill the chart has %d frames", n)
	}
	if _, err := os.Stat(filepath.Join(g.DataDir(), e2e.TrafficFile)); err != nil {
		t.Error(err)
	}
	g.Terminate()
	if wrong := b.Complaints("ERR_CONNECTION"); len(wrong) > 0 {
		t.Errorf("the browser complains: %q", wrong)
	}
}

// traffic is how many of a series the gateway counted in the last hour.
func traffic(g *e2e.Gateway, series string) (sum int) {
	g.T.Helper()
	var got struct {
		Data struct {
			Series []struct {
				Name   string
				Values []*int
			}
		}
	}
	g.Admin().Get("/admin/traffic").Decode(g.T, &got)
	for _, s := range got.Data.Series {
		for _, v := range s.Values {
			if s.Name == series && v != nil {
				sum += *v
			}
		}
	}
	return sum
}
