package app

import (
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"
)

// endpointsEach is how many endpoints each message goes to.
const endpointsEach = 100

// TestTwentyThousandDeadAreListedFilteredAndReplayed lets endpoints refuse
// 20,000 deliveries for good, or PENSTOCK_TEST_DEAD (a twentieth of them on the
// embedded store), finds every one of them, and sends them all again with one
// call. It prints the times; their bounds are loose.
func TestTwentyThousandDeadAreListedFilteredAndReplayed(t *testing.T) {
	t.Parallel()
	all := numberFrom(t, "PENSTOCK_TEST_DEAD", 20_000)
	onEverySite(t, func(t *testing.T, s *site) {
		t.Parallel()
		dead := all
		if s.redis == nil { // the embedded store is for small sites
			dead /= 20
		}
		var mended atomic.Bool
		var arrived sync.Map
		sink := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			if !mended.Load() {
				w.WriteHeader(http.StatusNotFound)
				return
			}
			arrived.Store(r.URL.Path+" "+r.URL.Query().Get("m"), true)
		}))
		t.Cleanup(sink.Close)
		var endpoints []string
		for n := range endpointsEach {
			endpoints = append(endpoints, fmt.Sprintf("%q", fmt.Sprintf("%s/load/%d?m=%%m", sink.URL, n)))
		}
		g := start(t, s, fixture(t, "load.yaml", `"SINK/load?m=%m&i=%i"`, strings.Join(endpoints, ", ")))
		for n := range dead / endpointsEach {
			g.as("acme-all-0123456").text(fmt.Sprintf("m%d", n), "447800012345", fmt.Sprintf("message-%04d", n))
		}
		g.awaitMetric("penstock_deliveries_dead_total", float64(dead))

		began := time.Now()
		seen, cursor := map[string]bool{}, ""
		for {
			var page struct {
				Data []struct{ ID, State string }
				Meta struct{ Next string }
			}
			g.admin().get("/admin/deliveries?state=dead&limit=1000&cursor="+cursor).into(t, &page)
			for _, d := range page.Data {
				seen[d.ID] = true
			}
			if cursor = page.Meta.Next; cursor == "" {
				break
			}
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
			found := g.deliveries(query)
			took := time.Since(began)
			t.Logf("%5d found by %s in %s", len(found), query, took.Round(time.Millisecond))
			if took > 20*time.Second {
				t.Errorf("%s took %s", query, took)
			}
		}
		if found := g.deliveries(fmt.Sprintf("state=dead&q=message-%04d", 7)); len(found) != endpointsEach {
			t.Errorf("%d found by their text, want %d", len(found), endpointsEach)
		}

		mended.Store(true)
		began = time.Now()
		g.admin().post("/admin/deliveries/replay", `{"state": "dead"}`).is(t, 200, fmt.Sprintf(`{"count": %d}`, dead))
		t.Logf("all %d replayed in %s", dead, time.Since(began).Round(time.Millisecond))
		g.awaitMetric("penstock_deliveries_delivered_total", float64(dead))
		t.Logf("all delivered %s after the call began", time.Since(began).Round(time.Millisecond))
		n := 0
		arrived.Range(func(any, any) bool { n++; return true })
		if n != dead || len(g.deliveries("state=dead")) != 0 {
			t.Errorf("%d of %d arrived", n, dead)
		}
	})
}

// awaitMetric waits until a metric has reached a value.
func (g *gateway) awaitMetric(name string, value float64) {
	g.t.Helper()
	eventually(g.t, name, func() (any, bool) {
		got := metrics(g.t, g.as("").get("/metrics").body)[name]
		return got, got >= value
	})
	eventually(g.t, "outcomes are saved", func() (any, bool) {
		left := metrics(g.t, g.as("").get("/metrics").body)["penstock_deliveries_unsaved"]
		return left, left == 0
	})
}
