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

// endpointsEach is how many endpoints each message goes to.
const endpointsEach = 100

// TestTwentyThousandDeadAreListedFilteredAndReplayed lets endpoints refuse
// 20,000 deliveries for good, or PENSTOCK_TEST_DEAD (a twentieth of them on the
// embedded store), finds every one of them, and sends them all again with one
// call. It prints the times; their bounds are loose.
func TestTwentyThousandDeadAreListedFilteredAndReplayed(t *testing.T) {
	e2e.RepeatOnEverySite(t, "PENSTOCK_TEST_DEAD", 20_000, func(t *testing.T, s *e2e.Site, dead int) {
		if s.Redis == nil { // the embedded store is for small sites
			dead /= 20
		}
		var corrected atomic.Bool
		var arrived sync.Map
		sink := e2e.NewServer(t, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			if !corrected.Load() {
				w.WriteHeader(http.StatusNotFound)
				return
			}
			arrived.Store(r.URL.Path+" "+r.URL.Query().Get("m"), true)
		}))
		var endpoints []string
		for n := range endpointsEach {
			endpoints = append(endpoints, fmt.Sprintf("\"%s/load/%d?m=%%m\"", sink, n))
		}
		g := e2e.Start(t, s, e2e.Fixture(t, "load.yaml", `"SINK/load?m=%m&i=%i"`, strings.Join(endpoints, ", ")))
		for n := range dead / endpointsEach {
			g.As("acme-all-0123456").PostInboundText(fmt.Sprintf("m%d", n), "447800012345", fmt.Sprintf("message-%04d", n))
		}
		g.AwaitMetric("penstock_deliveries_dead_total", float64(dead))

		began := time.Now()
		seen := map[string]bool{}
		for _, d := range e2e.List[e2e.Delivery](g.Admin(), "/admin/deliveries?state=dead&limit=1000") {
			seen[d.ID] = true
		}
		if len(seen) != dead {
			t.Errorf("%d of %d are listed", len(seen), dead)
		}
		t.Logf("all %d listed in %s", len(seen), time.Since(began).Round(time.Millisecond))
		for _, query := range []string{
			"state=dead&limit=1", "relay=g-load&state=dead&limit=1000", "account=1&target=/load&limit=1000",
			fmt.Sprintf("state=dead&q=message-%04d", 7), "q=answered+404&limit=1000", "state=dead&q=nothing+holds+this",
		} {
			began := time.Now()
			found := g.Deliveries(query)
			took := time.Since(began)
			t.Logf("%5d found by %s in %s", len(found), query, took.Round(time.Millisecond))
			if took > 20*time.Second {
				t.Errorf("%s took %s", query, took)
			}
		}
		if found := g.Deliveries(fmt.Sprintf("state=dead&q=message-%04d", 7)); len(found) != endpointsEach {
			t.Errorf("%d found by their text, want %d", len(found), endpointsEach)
		}

		corrected.Store(true)
		began = time.Now()
		g.Admin().Post("/admin/deliveries/replay", `{"state": "dead"}`).Is(t, 200, fmt.Sprintf(`{"count": %d}`, dead))
		t.Logf("all %d replayed in %s", dead, time.Since(began).Round(time.Millisecond))
		g.AwaitMetric("penstock_deliveries_delivered_total", float64(dead))
		t.Logf("all delivered %s after the call began", time.Since(began).Round(time.Millisecond))
		n := 0
		arrived.Range(func(any, any) bool { n++; return true })
		if n != dead || len(g.Deliveries("state=dead")) != 0 {
			t.Errorf("%d of %d arrived", n, dead)
		}
	})
}
