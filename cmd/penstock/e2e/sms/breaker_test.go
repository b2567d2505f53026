package sms

import (
	"fmt"
	"net/http"
	"sync/atomic"
	"testing"

	"github.com/penstock/penstock/cmd/penstock/e2e"
	"github.com/penstock/penstock/relay/relaytest"
)

// testBreaker lets one of two endpoints fail until its breaker opens, restarts the gateway, repairs
// the endpoint and closes the breaker with a request.
func testBreaker(t *testing.T, s *e2e.Site) {
	var repaired atomic.Bool
	sink := e2e.NewSink(t, func(w http.ResponseWriter, req e2e.SinkRequest, _ int) {
		if req.Path == "/sick" && !repaired.Load() {
			http.Error(w, "out of order", http.StatusInternalServerError)
		}
	})
	g := e2e.NewGateway(t, s, fmt.Sprintf(`{"accounts": [{"name": "acme", "tokens": [{"token": "acme-all-0123456", "scopes": ["carrier"]}], "relays": {"vmn": [
		{"id": "v", "number": "447800019999", "action": "http_get", "parameters": ["%[1]s/sick?m=%%msg", "%[1]s/sound?m=%%msg"]}]}}]}`, sink.URL))
	g.Spawn()
	const n = 40
	for i := range n {
		g.WithToken("acme-all-0123456").PostInboundText(fmt.Sprintf("b%d", i), "447800019999", fmt.Sprintf("text %d", i))
	}
	type breaker struct {
		Endpoint, Relay, Target, Reason string
		Waiting                         int
	}
	var list struct{ Data []breaker }
	openBreaker := func() breaker {
		g.Admin().Get("/admin/breakers").Decode(t, &list)
		if len(list.Data) != 1 {
			return breaker{}
		}
		return list.Data[0]
	}
	relaytest.Eventually(t, "the breaker is open and parks the remaining deliveries", func() (any, bool) {
		b := openBreaker()
		return list, b.Waiting > 0 && b.Waiting >= n-32 && b.Relay == "v" && b.Target == sink.URL+"/sick?m=***" && b.Reason == "answered 500 Internal Server Error"
	})
	relaytest.Eventually(t, "a delivery waits for the breaker", func() (any, bool) {
		waiting := g.Deliveries("waits_for=breaker")
		return g.Deliveries("limit=1000"), len(waiting) > 0
	})
	relaytest.Eventually(t, "the other endpoint has every message", func() (any, bool) { return len(sink.Requests("/sound")), len(sink.Requests("/sound")) == n })
	g.AwaitMetric("penstock_breakers_open", 1)
	g.AwaitMetric("penstock_deliveries_parked", 1)

	g.TerminateCleanly()
	g.Spawn()
	g.AwaitMetric("penstock_breakers_open", 1)
	repaired.Store(true)
	if b := openBreaker(); b.Endpoint != "" { // a probe may have closed the breaker
		g.Admin().Do(http.MethodDelete, "/admin/breakers/"+b.Endpoint, "").Expect(t, http.StatusNoContent, "")
	}
	relaytest.Eventually(t, "every message is delivered", func() (any, bool) {
		delivered := g.Deliveries("limit=1000&state=delivered")
		return len(delivered), len(delivered) == 2*n
	})
	relaytest.Eventually(t, "no breaker is open", func() (any, bool) {
		b := openBreaker()
		return list, b.Endpoint == ""
	})
	relaytest.Equal(t, "the number of dead deliveries", len(g.Deliveries("state=dead")), 0)
}
