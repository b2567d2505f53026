package failures

import (
	"net/http"
	"os"
	"testing"
	"time"

	"github.com/penstock/penstock/cmd/penstock/e2e"
	"github.com/penstock/penstock/relay/relaytest"
)

// outageTime returns the shortest time for which a back end is down: PENSTOCK_TEST_OUTAGE, or else 10 s
// in a soak and 0 in other runs.
func outageTime(t *testing.T) time.Duration {
	t.Helper()
	text := os.Getenv("PENSTOCK_TEST_OUTAGE")
	switch {
	case text == "" && e2e.Soak():
		return 10 * time.Second
	case text == "":
		return 0
	}
	d, err := time.ParseDuration(text)
	if err != nil {
		t.Fatalf("PENSTOCK_TEST_OUTAGE: %v", err)
	}
	return d
}

// TestOutageLosesNothing stops one back end after the other under load. The gateway always acknowledges
// the posts of known senders. Every acknowledged entry is stored after all back ends are up.
func TestOutageLosesNothing(t *testing.T) {
	t.Parallel()
	s := e2e.OwnServers(t)
	arrivals, url := e2e.NewMessageCounter(t)
	g := e2e.Start(t, s, e2e.Fixture(t, "load.yaml", "SINK", url))
	g.WithToken("acme-all-0123456").Post("/webhooks/lorawan", `{}`).Expect(t, 200, "")
	l := g.StartLoad(e2e.Connections)
	for _, server := range e2e.BackEnds() {
		t.Run(server.Name, func(t *testing.T) {
			l.AwaitMessages(t, 100)
			server.Stop(t, s)
			outageEnd := time.After(outageTime(t))
			relaytest.Eventually(t, "/readyz reports "+server.Name+" as down", func() (any, bool) {
				status, r := g.Ready()
				b := r.Backends[server.Check]
				return r, status == http.StatusServiceUnavailable && r.Status == "not ready" && b.Status == "down" && b.Error != ""
			})
			g.WithToken("").Get("/healthz").Expect(t, 200, `{"status": "alive"}`)
			if server.Check == "records" {
				resp := g.WithToken("somebody-new").Post("/webhooks/lorawan", `{}`)
				if resp.Status != http.StatusServiceUnavailable || resp.Header.Get("Retry-After") == "" {
					t.Errorf("answer to an unknown sender = %d %s, want 503 and Retry-After", resp.Status, resp.Body)
				}
			}
			l.AwaitMessages(t, 100)
			<-outageEnd
			server.Start(t, s)
			g.AwaitReady()
		})
	}
	l.AwaitMessages(t, 100)
	l.End()
	if len(l.Refused) > 0 {
		t.Errorf("known senders were refused: %v", l.Refused)
	}
	l.Check(t, arrivals)
	g.AwaitReady()
}
