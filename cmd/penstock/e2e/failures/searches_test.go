package failures

import (
	"fmt"
	"strings"
	"sync"
	"testing"

	"github.com/penstock/penstock/cmd/penstock/e2e"
	"github.com/penstock/penstock/relay/relaytest"
)

// Limits of searches in a journal with large posts: maxRunning searches may run at the same
// time, and the gateway may use maxSearchMemory, in KiB.
const (
	largePosts       = 300
	searches         = 30
	maxRunning       = 4
	maxSearchMemory  = 300 << 10
	largePostPadding = 800_000
)

// postLarge posts large bodies and waits until they are processed.
func postLarge(g *e2e.Gateway) {
	g.T.Helper()
	padding := strings.Repeat("z", largePostPadding)
	for i := range largePosts {
		g.WithToken("acme-all-0123456").Post("/webhooks/lorawan", fmt.Sprintf(`{"devEUI": "%016x", "padding": %q}`, i+1, padding)).Expect(g.T, 200, "")
	}
	g.AwaitProcessed()
}

// TestSearchesAreBounded starts many searches at the same time. Searches above the limit are refused,
// the gateway serves other requests, and its memory stays bounded.
func TestSearchesAreBounded(t *testing.T) {
	t.Parallel()
	g := newLimitedGateway(t)
	g.Spawn()
	g.AddUser("viv", "viewer", "")
	viewer := g.SignIn("viv")
	postLarge(g)
	for _, path := range []string{
		"/admin/events?kind=uplink&q=absent", "/admin/events?limit=1000", "/admin/events?kind=uplink&q=zzz&limit=1000",
	} {
		results := make(chan e2e.Response, searches)
		var wg sync.WaitGroup
		for range searches {
			wg.Go(func() {
				resp, err := viewer.Try("GET", path, "")
				if err != nil {
					t.Errorf("%s: %v", path, err)
				}
				results <- resp
			})
		}
		maxInFlight := 0.0
		for len(results) < searches {
			m := e2e.Metrics(t, g.WithToken("").Get("/metrics").Body)
			maxInFlight = max(maxInFlight, m[`penstock_requests_in_flight{kind="searches"}`])
			g.WithToken("acme-all-0123456").Get("/iot/devices/none").Mentions(t, 422)
			g.Admin().Get("/admin/accounts").Mentions(t, 200)
		}
		wg.Wait()
		close(results)
		refused, size := 0, 0
		for resp := range results {
			size += len(resp.Body)
			switch {
			case resp.Status == 503 && resp.Header.Get("Retry-After") != "" && strings.Contains(resp.Body, "Too many searches"):
				refused++
			case resp.Status != 200:
				t.Errorf("%s: %d %s", path, resp.Status, resp.Body)
			}
		}
		t.Logf("%s: %v at once, %d refused, %d bytes of answers; %d KiB at the peak", path, maxInFlight, refused, size, g.Memory("VmHWM"))
		if maxInFlight == 0 || maxInFlight > maxRunning {
			t.Errorf("%s: simultaneous searches = %v, want 1 to %d", path, maxInFlight, maxRunning)
		}
	}
	if peak := g.Memory("VmHWM"); peak > maxSearchMemory {
		t.Errorf("peak memory = %d KiB, want at most %d", peak, maxSearchMemory)
	}
	relaytest.Equal(t, "the number of searches in flight", e2e.Metrics(t, g.WithToken("").Get("/metrics").Body)[`penstock_requests_in_flight{kind="searches"}`], 0)
}
