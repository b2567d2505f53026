package outbox

import (
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/penstock/penstock/relay/db"
	"github.com/penstock/penstock/relay/db/dbtest"
	"github.com/penstock/penstock/relay/relaytest"
)

func TestParkedDeliveries(t *testing.T) {
	onEvery(t, db.Options{}, []testCase{
		{"a parked delivery is not due and keeps the end of its first wait", func(r *rig) {
			d := toEndpoint("e", "a", false)
			r.create(30, d)
			r.recordOutcomes(parkedOutcome(d, 100))
			r.recordOutcomes(parkedOutcome(d, 200))
			got := r.get(d.ID)
			if got.WaitsFor != WaitsForBreaker || !got.ParkedUntil.Equal(timeAt(100)) || !got.NextAttemptAt.IsZero() || got.Tries != 0 || len(got.Attempts) != 0 || got.Reason != "it fails" {
				r.Errorf("delivery = %+v, want it parked until 100 s, without an attempt", got)
			}
			if ids := r.dueIDs(1e6, 9); len(ids) != 0 {
				r.Errorf("due deliveries = %v, want none", ids)
			}
			if _, ok, err := r.Lease(r.Context(), 1, "a", timeAt(1e6), timeAt(2e6)); ok || err != nil {
				r.Errorf("leased = %v, error %v; want false", ok, err)
			}
		}},
		{"endpoints are listed, and their deliveries are counted and taken by the end of their wait", func(r *rig) {
			a, b, c := toEndpoint("e", "a", false), toEndpoint("e", "b", false), toEndpoint("f", "c", false)
			d, e, f := inAccount(2, toEndpoint("g", "d", false)), inAccount(2, toEndpoint("h", "e", false)), inAccount(4, toEndpoint("a", "f", false))
			r.create(30, a, b, c, d, e, f, toEndpoint("z", "not parked", false))
			r.recordOutcomes(parkedOutcome(a, 100), parkedOutcome(b, 50), parkedOutcome(c, 70), parkedOutcome(d, 80), parkedOutcome(e, 90), parkedOutcome(f, 95))
			endpoints, err := r.ParkedEndpoints(r.Context())
			slices.SortFunc(endpoints, func(x, y ParkedEndpoint) int { return x.FirstParkedUntil.Compare(y.FirstParkedUntil) })
			relaytest.NoError(r, err)
			relaytest.Equal(r, "endpoints", endpoints, []ParkedEndpoint{
				{Account: 1, Endpoint: "e", FirstParkedUntil: timeAt(50)}, {Account: 1, Endpoint: "f", FirstParkedUntil: timeAt(70)},
				{Account: 2, Endpoint: "g", FirstParkedUntil: timeAt(80)}, {Account: 2, Endpoint: "h", FirstParkedUntil: timeAt(90)}, {Account: 4, Endpoint: "a", FirstParkedUntil: timeAt(95)},
			})
			counts, err := r.CountParked(r.Context())
			relaytest.NoError(r, err)
			relaytest.Equal(r, "counts", counts, map[string]int{"e": 2, "f": 1, "g": 1, "h": 1, "a": 1})
			if got := r.takeIDs("e", 9, timeAt(49)); len(got) != 0 {
				r.Errorf("taken before the end of their wait: %v, want none", got)
			}
			if got := r.takeIDs("e", 1, time.Time{}); !slices.Equal(got, []string{"b"}) {
				r.Errorf("taken with limit 1: %v, want b", got)
			}
			if got := r.takeIDs("e", 9, timeAt(100)); !slices.Equal(got, []string{"a"}) {
				r.Errorf("taken by the second call: %v, want a", got)
			}
			if endpoints, err = r.ParkedEndpoints(r.Context()); err != nil || len(endpoints) != 4 {
				r.Errorf("parked endpoints = %+v, error %v; want 4", endpoints, err)
			}
			if ids := r.dueIDs(500, 9); !slices.Equal(slices.Sorted(slices.Values(ids)), []string{"a", "b", "not parked"}) {
				r.Errorf("due after their lease: %v, want a, b and not parked", ids)
			}
		}},
		{"a counted attempt ends the wait and keeps ParkedUntil", func(r *rig) {
			d := toEndpoint("e", "a", false)
			r.create(30, d)
			r.recordOutcomes(parkedOutcome(d, 100))
			o := outcome(d, 1, Retrying)
			o.Endpoint = "e"
			r.recordOutcomes(o)
			if got := r.get(d.ID); got.WaitsFor != "" || !got.ParkedUntil.Equal(timeAt(100)) || got.Tries != 1 {
				r.Errorf("delivery = %+v, want one try, no wait and ParkedUntil at 100 s", got)
			}
			if got := r.takeIDs("e", 9, time.Time{}); len(got) != 0 {
				r.Errorf("parked deliveries = %v, want none", got)
			}
		}},
		{"a failed probe is recorded, does not count as a try and is parked again", func(r *rig) {
			d := toEndpoint("e", "a", false)
			r.create(30, d)
			r.recordOutcomes(parkedOutcome(d, 100))
			r.takeIDs("e", 1, time.Time{})
			o := outcome(d, 1, Retrying)
			o.Uncounted, o.NextAttemptAt, o.ParkedUntil, o.Endpoint = true, time.Time{}, timeAt(300), "e"
			r.recordOutcomes(o)
			if got := r.get(d.ID); got.WaitsFor != WaitsForBreaker || !got.ParkedUntil.Equal(timeAt(100)) || got.Tries != 0 || len(got.Attempts) != 1 || got.State != Retrying {
				r.Errorf("delivery = %+v, want it parked until 100 s, with one attempt and no try", got)
			}
		}},
		{"lists select parked deliveries", func(r *rig) {
			a, b := toEndpoint("e", "a", false), toEndpoint("e", "b", false)
			r.create(30, a, b)
			r.recordOutcomes(parkedOutcome(a, 100))
			page, _, err := r.List(r.Context(), Filter{WaitsFor: WaitsForBreaker})
			relaytest.NoError(r, err)
			if len(page) != 1 {
				r.Fatalf("got %d deliveries, want 1", len(page))
			}
			relaytest.Equal(r, "the id of the delivery", page[0].ID, "a")
			relaytest.Equal(r, "the wait of the delivery", page[0].WaitsFor, WaitsForBreaker)
		}},
	})
}

// The scheduler lists the endpoints every second while hundreds of thousands of deliveries may
// be parked.
func TestParkedEndpointsAreReadFromTheIndex(t *testing.T) {
	plan, err := db.List(t.Context(), dbtest.Open(t, db.Options{}), "test", "EXPLAIN QUERY PLAN "+selectParked, func(v *string) []any {
		var skip any
		return []any{&skip, &skip, &skip, v}
	})
	relaytest.NoError(t, err)
	searches := 0
	for _, step := range plan {
		switch {
		case strings.Contains(step, "delivery_parked") && strings.HasPrefix(step, "SEARCH"):
			searches++
		case strings.Contains(step, "delivery"):
			t.Errorf("step %q does not search the index", step)
		}
	}
	relaytest.Equal(t, "the searches in the index", searches, 4)
}
