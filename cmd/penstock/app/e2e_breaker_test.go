package app

import (
	"fmt"
	"net/http"
	"sync/atomic"
	"testing"
)

// testBreaker lets one endpoint of two fail until its breaker opens, restarts
// the gateway, and closes the breaker by hand once the endpoint works.
func testBreaker(t *testing.T, s *site) {
	var works atomic.Bool
	k := newSink(t, func(w http.ResponseWriter, h hit, _ int) {
		if h.path == "/sick" && !works.Load() {
			http.Error(w, "out of order", http.StatusInternalServerError)
		}
	})
	g := newGateway(t, s, fmt.Sprintf(`{"accounts": [{"name": "acme", "tokens": [{"token": "acme-all-0123456", "scopes": ["carrier"]}], "relays": {"vmn": [
		{"id": "v", "number": "447800019999", "action": "http_get", "parameters": ["%[1]s/sick?m=%%msg", "%[1]s/sound?m=%%msg"]}]}}]}`, k.url))
	g.spawn()
	const n = 40
	for i := range n {
		g.as("acme-all-0123456").text(fmt.Sprintf("b%d", i), "447800019999", fmt.Sprintf("text %d", i))
	}
	type breaker struct {
		Endpoint, Relay, Target, Reason string
		Waiting                         int
	}
	var open struct{ Data []breaker }
	listed := func() breaker {
		g.admin().get("/admin/breakers").into(t, &open)
		if len(open.Data) != 1 {
			return breaker{}
		}
		return open.Data[0]
	}
	eventually(t, "the breaker is open and holds the rest", func() (any, bool) {
		b := listed()
		return open, b.Waiting > 0 && b.Waiting >= n-32 && b.Relay == "v" && b.Target == k.url+"/sick?m=***" && b.Reason == "answered 500 Internal Server Error"
	})
	if got := len(g.deliveries("waits_for=breaker")); got == 0 {
		t.Error("no delivery says that it waits for the breaker")
	}
	eventually(t, "the other endpoint gets everything", func() (any, bool) { return len(k.at("/sound")), len(k.at("/sound")) == n })
	g.awaitMetric("penstock_breakers_open", 1)
	g.awaitMetric("penstock_deliveries_parked", 1)

	if code := g.terminate(); code != 0 {
		t.Errorf("exit code %d", code)
	}
	g.spawn()
	g.awaitMetric("penstock_breakers_open", 1)
	works.Store(true)
	if b := listed(); b.Endpoint != "" { // else a probe was faster
		g.admin().do(http.MethodDelete, "/admin/breakers/"+b.Endpoint, "").is(t, http.StatusNoContent, "")
	}
	eventually(t, "everything has arrived", func() (any, bool) {
		left := g.deliveries("limit=1000&state=delivered")
		return len(left), len(left) == 2*n
	})
	g.admin().get("/admin/breakers").is(t, 200, `{"data": []}`)
	if dead := g.deliveries("state=dead"); len(dead) != 0 {
		t.Errorf("dead: %+v", dead)
	}
}
