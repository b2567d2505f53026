package console

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/penstock/penstock/cmd/penstock/e2e"
	"github.com/penstock/penstock/relay/relaytest"
)

// TestConsoleWorksInAnOutage stops each back end. The console shows the back end and the beginning of the
// outage, the admin token still signs in, and the console shows the data that can be read.
func TestConsoleWorksInAnOutage(t *testing.T) {
	t.Parallel()
	wantTexts := map[string][]string{ // texts on the page of events
		"PostgreSQL": {"The database does not answer", "Unknown", "shed"}, "Redis": {"Processed", "shed"}, "InfluxDB": {"Processed", "shed"},
	}
	s := e2e.OwnServers(t)
	g := e2e.Start(t, s, e2e.Fixture(t, "inventory.yaml"))
	g.WithToken("acme-all-0123456").Post("/webhooks/generic/shed?decoder_id=sent", `{"temperature":21}`).Mentions(t, 200, "21")
	g.AwaitProcessed()
	b := e2e.NewBrowser(t)
	b.Open(g.URL() + "/console")
	b.SignIn()
	b.AwaitText("Back ends ready", "Received, per minute", "No paused endpoints.")
	for _, server := range e2e.BackEnds() {
		t.Run(server.Name, func(t *testing.T) {
			b.T = t
			server.Stop(t, s)
			b.AwaitText(server.Check, "is down since", "The gateway goes on accepting", "Back ends not ready")
			if server.Check != "readings" {
				b.AwaitText("Stale: not refreshed since")
			}
			b.Press("Sign out (admin token)")
			b.SignIn()
			b.AwaitText("is down since", "Received, per minute")
			b.Press("Events")
			b.AwaitText(wantTexts[server.Name]...)

			server.Start(t, s)
			b.Press("Overview")
			// Every part must be loaded before the next back end stops, or there is nothing to be stale.
			b.AwaitText("Back ends ready", "Received, per minute", "No paused endpoints.")
			b.AwaitCondition("no part of the page is stale", `document.querySelector(".stale, .outage") === null`)
			b.ExpectNoProblems("status of 503")
		})
	}
}

// TestConsoleRefreshesItself waits for a new row in a list and for traffic in a chart. The traffic is not
// lost in a kill.
func TestConsoleRefreshesItself(t *testing.T) {
	t.Parallel()
	g := e2e.NewGateway(t, e2e.Embedded(), e2e.Fixture(t, "inventory.yaml"))
	g.Spawn()
	b := e2e.NewBrowser(t)
	b.Open(g.URL() + "/console#events")
	b.SignIn()
	b.AwaitText("No events yet.", "(every 5 s)")
	g.WithToken("acme-all-0123456").Post("/webhooks/generic/shed?decoder_id=sent", `{"temperature":21}`).Mentions(t, 200, "21")
	b.AwaitText("shed", "temperature 21", "acme", "new")
	b.Press("Overview")
	b.AwaitText("Received, per minute", "Counted by gateway ")
	relaytest.Eventually(t, "the frame is in the chart's data", func() (any, bool) { return trafficCount(g, "uplink"), trafficCount(g, "uplink") == 1 })
	b.AwaitCondition("three charts are drawn", `document.querySelectorAll("figure.chart canvas").length === 3`)
	b.Open("about:blank")
	g.Kill()
	g.Spawn()
	if n := trafficCount(g, "uplink"); n != 1 {
		t.Errorf("frames in the chart after a kill = %d, want 1", n)
	}
	if _, err := os.Stat(filepath.Join(g.DataDir(), e2e.TrafficFile)); err != nil {
		t.Error(err)
	}
	g.Terminate()
	b.ExpectNoProblems("ERR_CONNECTION")
}

// trafficCount returns the sum of a series of the last hour.
func trafficCount(g *e2e.Gateway, series string) (sum int) {
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
