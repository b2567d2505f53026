package sms

import (
	"fmt"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/penstock/penstock/cmd/penstock/e2e"
)

// endpointsPerMessage is the number of endpoints to which each message is delivered.
const endpointsPerMessage = 100

// TestThousandsOfDeadDeliveriesAreListedFilteredAndReplayed makes endpoints refuse 2,000 deliveries,
// 20,000 in a soak, or PENSTOCK_TEST_DEAD; a tenth of this number on the embedded store. It lists all
// dead deliveries, and replays them with one request. It logs the times.
func TestThousandsOfDeadDeliveriesAreListedFilteredAndReplayed(t *testing.T) {
	t.Parallel()
	e2e.OnEverySite(t, func(t *testing.T, s *e2e.Site) {
		t.Parallel()
		deadCount := e2e.Rounds(t, "PENSTOCK_TEST_DEAD", 2000, 20_000)
		if s.Redis == nil { // the embedded store is for small sites
			deadCount /= 10
		}
		var corrected atomic.Bool
		var arrivals sync.Map
		sink := e2e.NewServer(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			if !corrected.Load() {
				w.WriteHeader(http.StatusNotFound)
				return
			}
			arrivals.Store(r.URL.Path+" "+r.URL.Query().Get("m"), true)
		}))
		var endpoints []string
		for n := range endpointsPerMessage {
			endpoints = append(endpoints, fmt.Sprintf("\"%s/load/%d?m=%%m\"", sink, n))
		}
		g := e2e.Start(t, s, e2e.Fixture(t, "load.yaml", `"SINK/load?m=%m&i=%i"`, strings.Join(endpoints, ", ")))
		for n := range deadCount / endpointsPerMessage {
			g.WithToken("acme-all-0123456").PostInboundText(fmt.Sprintf("m%d", n), "447800012345", fmt.Sprintf("message-%04d", n))
		}
		g.AwaitMetric("penstock_deliveries_dead_total", float64(deadCount))

		startedAt := time.Now()
		listedIDs := map[string]bool{}
		for _, d := range e2e.List[e2e.Delivery](g.Admin(), "/admin/deliveries?state=dead&limit=1000") {
			listedIDs[d.ID] = true
		}
		if len(listedIDs) != deadCount {
			t.Errorf("listed %d of %d dead deliveries, want all", len(listedIDs), deadCount)
		}
		t.Logf("all %d listed in %s", len(listedIDs), time.Since(startedAt).Round(time.Millisecond))
		for _, query := range []string{
			"state=dead&limit=1", "relay=g-load&state=dead&limit=1000", "account=1&target=/load&limit=1000",
			fmt.Sprintf("state=dead&q=message-%04d", 1), "q=answered+404&limit=1000", "state=dead&q=nothing+holds+this",
		} {
			searchedAt := time.Now()
			found := g.Deliveries(query)
			t.Logf("%5d found by %s in %s", len(found), query, time.Since(searchedAt).Round(time.Millisecond))
		}
		if found := g.Deliveries(fmt.Sprintf("state=dead&q=message-%04d", 1)); len(found) != endpointsPerMessage {
			t.Errorf("deliveries with a text = %d, want %d", len(found), endpointsPerMessage)
		}

		corrected.Store(true)
		startedAt = time.Now()
		g.Admin().Post("/admin/deliveries/replay", `{"state": "dead"}`).Expect(t, 200, fmt.Sprintf(`{"count": %d}`, deadCount))
		t.Logf("all %d replayed in %s", deadCount, time.Since(startedAt).Round(time.Millisecond))
		g.AwaitMetric("penstock_deliveries_delivered_total", float64(deadCount))
		t.Logf("all delivered %s after the call began", time.Since(startedAt).Round(time.Millisecond))
		count := 0
		arrivals.Range(func(any, any) bool { count++; return true })
		if count != deadCount || len(g.Deliveries("state=dead")) != 0 {
			t.Errorf("arrived deliveries = %d, want %d and no dead deliveries", count, deadCount)
		}
	})
}
