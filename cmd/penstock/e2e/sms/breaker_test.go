package sms

import (
	"fmt"
	"net/http"
	"sync/atomic"
	"testing"

	"github.com/penstock/penstock/cmd/penstock/e2e"
	"github.com/penstock/penstock/relay/relaytest"
)

// testBreaker makes one endpoint of two fail until its breaker opens, restarts the gateway, and
// closes the breaker by a request once the endpoint works.
func testBreaker(t *testing.T, s *e2e.Site) {
	var works atomic.Bool
	k := e2e.NewSink(t, func(w http.ResponseWriter, h e2e.SinkRequest, _ int) {
		if h.Path == "/sick" && !works.Load() {
			http.Error(w, "out of order", http.StatusInternalServerError)
		}
	})
	g := e2e.NewGateway(t, s, fmt.Sprintf(`{"accounts": [{"name": "acme", "tokens": [{"token": "acme-all-0123456", "scopes": ["carrier"]}], "relays": {"vmn": [
		{"id": "v", "number": "447800019999", "action": "http_get", "parameters": ["%[1]s/sick?m=%%msg", "%[1]s/sound?m=%%msg"]}]}}]}`, k.URL))
	g.Spawn()
	const n = 40
	for i := range n {
		g.As("acme-all-0123456").PostInboundText(fmt.Sprintf("b%d", i), "447800019999", fmt.Sprintf("text %d", i))
	}
	type breaker struct {
		Endpoint, Relay, Target, Reason string
		Waiting                         int
	}
	var open struct{ Data []breaker }
	listed := func() breaker {
		g.Admin().Get("/admin/breakers").Decode(t, &open)
		if len(open.Data) != 1 {
			return breaker{}
		}
		return open.Data[0]
	}
	relaytest.Eventually(t, "the breaker is open and parks the remaining deliveries", func() (any, bool) {
		b := listed()
		return open, b.Waiting > 0 && b.Waiting >= n-32 && b.Relay == "v" && b.Target == k.URL+"/sick?m=***" && b.Reason == "answered 500 Internal Server Error"
	})
	relaytest.Eventually(t, "a delivery waits for the breaker", func() (any, bool) {
		waiting := g.Deliveries("waits_for=breaker")
		return g.Deliveries("limit=1000"), len(waiting) > 0
	})
	relaytest.Eventually(t, "the other endpoint has every message", func() (any, bool) { return len(k.Requests("/sound")), len(k.Requests("/sound")) == n })
	g.AwaitMetric("penstock_breakers_open", 1)
	g.AwaitMetric("penstock_deliveries_parked", 1)

	g.EndCleanly()
	g.Spawn()
	g.AwaitMetric("penstock_breakers_open", 1)
	works.Store(true)
	if b := listed(); b.Endpoint != "" { // a probe may have closed the breaker
		g.Admin().Do(http.MethodDelete, "/admin/breakers/"+b.Endpoint, "").Is(t, http.StatusNoContent, "")
	}
	relaytest.Eventually(t, "every message is delivered", func() (any, bool) {
		delivered := g.Deliveries("limit=1000&state=delivered")
		return len(delivered), len(delivered) == 2*n
	})
	relaytest.Eventually(t, "no breaker is open", func() (any, bool) {
		b := listed()
		return open, b.Endpoint == ""
	})
	relaytest.Equal(t, "the number of dead deliveries", len(g.Deliveries("state=dead")), 0)
}
