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

func TestDeliveriesThatWaitForABreaker(t *testing.T) {
	onEvery(t, db.Options{}, []testCase{
		{"it is not due, says so, and keeps the end of its first wait", func(r *rig) {
			d := to("e", "a", false)
			r.create(30, d)
			r.finished(parkedOutcome(d, 100))
			r.finished(parkedOutcome(d, 200))
			got := r.get(d.ID)
			if got.Waits != WaitsForBreaker || !got.ParkedUntil.Equal(at(100)) || !got.NextAttemptAt.IsZero() || got.Tries != 0 || len(got.Attempts) != 0 || got.Reason != "it fails" {
				r.Errorf("got %+v", got)
			}
			if ids := r.due(1e6, 9); len(ids) != 0 {
				r.Errorf("due %v", ids)
			}
			if _, ok, err := r.Lease(r.Context(), 1, "a", at(1e6), at(2e6)); ok || err != nil {
				r.Errorf("leased %v, error %v", ok, err)
			}
		}},
		{"endpoints are listed and their deliveries counted, and taken from the shortest wait on", func(r *rig) {
			a, b, c := to("e", "a", false), to("e", "b", false), to("f", "c", false)
			d, e, f := of(2, to("g", "d", false)), of(2, to("h", "e", false)), of(4, to("a", "f", false))
			r.create(30, a, b, c, d, e, f, to("z", "not parked", false))
			r.finished(parkedOutcome(a, 100), parkedOutcome(b, 50), parkedOutcome(c, 70), parkedOutcome(d, 80), parkedOutcome(e, 90), parkedOutcome(f, 95))
			lines, err := r.Parked(r.Context())
			slices.SortFunc(lines, func(x, y ParkedEndpoint) int { return x.First.Compare(y.First) })
			relaytest.NoError(r, err)
			relaytest.Equal(r, "endpoints", lines, []ParkedEndpoint{
				{Account: 1, Endpoint: "e", First: at(50)}, {Account: 1, Endpoint: "f", First: at(70)},
				{Account: 2, Endpoint: "g", First: at(80)}, {Account: 2, Endpoint: "h", First: at(90)}, {Account: 4, Endpoint: "a", First: at(95)},
			})
			counts, err := r.CountParked(r.Context())
			relaytest.NoError(r, err)
			relaytest.Equal(r, "counts", counts, map[string]int{"e": 2, "f": 1, "g": 1, "h": 1, "a": 1})
			if got := r.taken("e", 9, at(49)); len(got) != 0 {
				r.Errorf("too early: %v", got)
			}
			if got := r.taken("e", 1, time.Time{}); !slices.Equal(got, []string{"b"}) {
				r.Errorf("the first: %v", got)
			}
			if got := r.taken("e", 9, at(100)); !slices.Equal(got, []string{"a"}) {
				r.Errorf("the rest: %v", got)
			}
			if lines, err = r.Parked(r.Context()); err != nil || len(lines) != 4 {
				r.Errorf("left %+v, error %v", lines, err)
			}
			if ids := r.due(500, 9); !slices.Equal(slices.Sorted(slices.Values(ids)), []string{"a", "b", "not parked"}) {
				r.Errorf("due after their lease: %v", ids)
			}
		}},
		{"an attempt that counts ends the wait, but not the time breakers have", func(r *rig) {
			d := to("e", "a", false)
			r.create(30, d)
			r.finished(parkedOutcome(d, 100))
			o := outcome(d, 1, Retrying)
			o.Endpoint = "e"
			r.finished(o)
			if got := r.get(d.ID); got.Waits != "" || !got.ParkedUntil.Equal(at(100)) || got.Tries != 1 {
				r.Errorf("got %+v", got)
			}
			if got := r.taken("e", 9, time.Time{}); len(got) != 0 {
				r.Errorf("still in the line: %v", got)
			}
		}},
		{"a probe that fails is kept, counts nothing and waits again", func(r *rig) {
			d := to("e", "a", false)
			r.create(30, d)
			r.finished(parkedOutcome(d, 100))
			r.taken("e", 1, time.Time{})
			o := outcome(d, 1, Retrying)
			o.Uncounted, o.NextAttemptAt, o.ParkedUntil, o.Endpoint = true, time.Time{}, at(300), "e"
			r.finished(o)
			if got := r.get(d.ID); got.Waits != WaitsForBreaker || !got.ParkedUntil.Equal(at(100)) || got.Tries != 0 || len(got.Attempts) != 1 || got.State != Retrying {
				r.Errorf("got %+v", got)
			}
		}},
		{"lists tell and find it", func(r *rig) {
			a, b := to("e", "a", false), to("e", "b", false)
			r.create(30, a, b)
			r.finished(parkedOutcome(a, 100))
			page, _, err := r.List(r.Context(), Filter{Waits: WaitsForBreaker})
			relaytest.NoError(r, err)
			if len(page) != 1 {
				r.Fatalf("result of List: %d results, want %d", len(page), 1)
			}
			relaytest.Equal(r, "result of List, [0].ID", page[0].ID, "a")
			relaytest.Equal(r, "result of List, [0].Waits", page[0].Waits, WaitsForBreaker)
		}},
	})
}

// The scheduler asks every second, and hundreds of thousands of deliveries may be parked.
func TestEndpointsOfParkedDeliveriesAreFoundInTheIndex(t *testing.T) {
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
			t.Errorf("%q reads more than it needs", step)
		}
	}
	relaytest.Equal(t, "the searches in the index", searches, 4)
}
