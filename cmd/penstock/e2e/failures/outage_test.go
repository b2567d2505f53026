package failures

import (
	"net/http"
	"os"
	"testing"
	"time"

	"github.com/penstock/penstock/cmd/penstock/e2e"
	"github.com/penstock/penstock/relay/relaytest"
)

// outage is how long a back end is away: 10 s, or PENSTOCK_TEST_OUTAGE.
func outage(t *testing.T) time.Duration {
	t.Helper()
	text := os.Getenv("PENSTOCK_TEST_OUTAGE")
	if text == "" {
		return 10 * time.Second
	}
	d, err := time.ParseDuration(text)
	if err != nil {
		t.Fatalf("PENSTOCK_TEST_OUTAGE: %v", err)
	}
	return d
}

// TestOutageLosesNothing stops a back end under load: known senders go on
// getting their 2xx, and everything is there once it is back.
func TestOutageLosesNothing(t *testing.T) {
	t.Parallel()
	for _, server := range e2e.BackEnds() {
		t.Run(server.Name, func(t *testing.T) {
			t.Parallel()
			s := e2e.RealSite(t)
			c, url := e2e.NewMessageCounter(t)
			g := e2e.Start(t, s, e2e.Fixture(t, "load.yaml", "SINK", url))
			g.As("acme-all-0123456").Post("/webhooks/lorawan", `{}`).Is(t, 200, "")
			l := g.StartLoad(e2e.Connections)
			<-time.After(time.Second)

			server.Stop(t, s)
			back := time.After(outage(t))
			relaytest.Eventually(t, server.Name+" is named as what is missing", func() (any, bool) {
				status, r := g.Ready()
				b := r.Backends[server.Check]
				return r, status == http.StatusServiceUnavailable && r.Status == "not ready" && b.Status == "down" && b.Error != ""
			})
			g.As("").Get("/healthz").Is(t, 200, `{"status": "alive"}`)
			if server.Check == "records" {
				a := g.As("somebody-new").Post("/webhooks/lorawan", `{}`)
				if a.Status != http.StatusServiceUnavailable || a.Header.Get("Retry-After") == "" {
					t.Errorf("a sender nobody knows gets %d %s, want 503 and Retry-After", a.Status, a.Body)
				}
			}
			<-back
			server.Start(t, s)

			<-time.After(time.Second)
			l.End()
			if len(l.Refused) > 0 {
				t.Errorf("known senders were refused: %v", l.Refused)
			}
			l.Check(t, c)
			g.AwaitReady()
		})
	}
}
