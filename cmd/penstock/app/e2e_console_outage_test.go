package app

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/chromedp/chromedp"
	"github.com/chromedp/chromedp/kb"
)

// TestConsoleInAnOutage stops each back end while the operator looks: the page says
// which is down and since when, the token still signs in, and what can be read is.
func TestConsoleInAnOutage(t *testing.T) {
	t.Parallel()
	for _, tc := range []struct {
		name, backend string
		stop          func(s *site)
		start         func(t *testing.T, s *site)
		shows         []string // of the events' page
	}{
		{
			"PostgreSQL", "records", func(s *site) { s.postgres.Kill() }, func(_ *testing.T, s *site) { s.postgres.Start() },
			[]string{"The database does not answer", "unknown", "shed"},
		},
		{"Redis", "queue", func(s *site) { s.redis.Stop() }, func(_ *testing.T, s *site) { s.redis.Restart() }, []string{"done", "shed"}},
		{"InfluxDB", "readings", func(s *site) { s.influx.Stop() }, func(t *testing.T, s *site) { s.influx.Restart(t) }, []string{"done", "shed"}},
	} {
		t.Run(tc.name, func(t *testing.T) {
			s := realSite(t)
			g := start(t, s, fixture(t, "inventory.yaml"))
			g.as("acme-all-0123456").post("/webhooks/generic/shed?decoder_id=sent", `{"temperature":21}`).mentions(t, 200, "21")
			g.settled()
			b := newBrowser(t)
			b.do(chromedp.Navigate(g.url() + "/console"))
			b.write("#token", adminToken+kb.Enter)
			b.shows("Back ends ready", "Came in, per minute", "None. An endpoint that fails ten times in a row")

			tc.stop(s)
			b.shows(tc.backend, "is down since", "The gateway goes on accepting", "Back ends not ready")
			if tc.backend != "readings" {
				b.shows("Stale: not refreshed since")
			}
			b.press("Sign out")
			b.write("#token", adminToken+kb.Enter)
			b.shows("is down since", "Came in, per minute")
			b.press("Events")
			b.shows(tc.shows...)

			tc.start(t, s)
			b.press("Overview")
			b.shows("Back ends ready", "Last error since the start")
			eventually(t, "nothing is stale any more", func() (any, bool) {
				return b.text(), !b.holds(`document.querySelector(".stale, .outage") !== null`)
			})
			if wrong := b.complaints("status of 503"); len(wrong) > 0 {
				t.Errorf("the browser complains: %q", wrong)
			}
		})
	}
}

// TestConsoleIsLive sees a row appear in a list and traffic in a chart, also after a
// restart, from an empty data directory.
func TestConsoleIsLive(t *testing.T) {
	t.Parallel()
	g := newGateway(t, &site{name: "embedded"}, fixture(t, "inventory.yaml"))
	g.spawn()
	b := newBrowser(t)
	b.do(chromedp.Navigate(g.url() + "/console#events"))
	b.write("#token", adminToken+kb.Enter)
	b.shows("No event matches.", "Live: asked every 5 seconds")
	g.as("acme-all-0123456").post("/webhooks/generic/shed?decoder_id=sent", `{"temperature":21}`).mentions(t, 200, "21")
	b.shows("uplink of shed", "acme (1)", "new")
	b.press("Overview")
	b.shows("Came in, per minute", "Counted by this gateway")
	eventually(t, "the frame is in the chart's data", func() (any, bool) { return g.traffic("uplink"), g.traffic("uplink") == 1 })
	if !b.holds(`document.querySelectorAll("figure.chart canvas").length === 3`) {
		t.Error("the charts are not drawn")
	}
	b.do(chromedp.Navigate("about:blank"))
	g.kill()
	g.spawn()
	if n := g.traffic("uplink"); n != 1 {
		t.Errorf("after a kill the chart has %d frames", n)
	}
	if _, err := os.Stat(filepath.Join(g.data(), trafficFile)); err != nil {
		t.Error(err)
	}
	g.terminate()
	if wrong := b.complaints("ERR_CONNECTION"); len(wrong) > 0 {
		t.Errorf("the browser complains: %q", wrong)
	}
}

// traffic is how many of a series the gateway counted in the last hour.
func (g *gateway) traffic(series string) (sum int) {
	g.t.Helper()
	var got struct {
		Data struct {
			Series []struct {
				Name   string
				Values []*int
			}
		}
	}
	g.admin().get("/admin/traffic").into(g.t, &got)
	for _, s := range got.Data.Series {
		for _, v := range s.Values {
			if s.Name == series && v != nil {
				sum += *v
			}
		}
	}
	return sum
}
