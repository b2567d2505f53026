package outbox

import (
	"slices"
	"testing"

	"github.com/penstock/penstock/relay/db"
	"github.com/penstock/penstock/relay/relaytest"
)

func TestOrderedEndpoints(t *testing.T) {
	onEvery(t, db.Options{}, []testCase{
		{"deliveries are attempted one at a time, and a replayed one last", attemptedOneAtATime},
		{"creating a delivery again does not change its turn", func(r *rig) {
			ds := []Delivery{toEndpoint("e", "a", true), toEndpoint("e", "b", true)}
			r.create(30, ds...)
			created, err := r.Create(r.Context(), []Delivery{toEndpoint("e", "b", true), toEndpoint("e", "c", true), toEndpoint("e", "a", true)}, timeAt(30))
			r.must(err)
			relaytest.Equal(r, "the new deliveries", ids(created), []string{"c"})
			r.deliverInOrder(1, "a", "b", "c")
		}},
		{"a delivery to an idle endpoint is attempted at once", func(r *rig) {
			r.create(30, toEndpoint("e", "a", true))
			r.deliverInOrder(1, "a")
			r.create(30, toEndpoint("e", "b", true))
			if d := r.get("b"); d.WaitsFor != "" || !d.NextAttemptAt.Equal(timeAt(30)) {
				r.Errorf("delivery = %+v, want a lease until 30 s and no wait", d)
			}
		}},
		{"deliveries that end in one batch give the turn to the next one", func(r *rig) {
			for _, id := range []string{"a", "b", "c"} {
				r.create(30, toEndpoint("e", id, true))
			}
			turns := r.recordOutcomes(outcome(newDelivery("a"), 1, Delivered), outcome(newDelivery("b"), 1, Dead))
			if !slices.Equal(turns, refs("c")) {
				r.Errorf("turns = %v, want %v", turns, refs("c"))
			}
		}},
		{"a repeated outcome does not give a second turn", func(r *rig) {
			r.create(30, toEndpoint("e", "a", true), toEndpoint("e", "b", true), toEndpoint("e", "c", true))
			for i, want := range [][]Ref{refs("b"), nil} {
				if got := r.recordOutcomes(outcome(newDelivery("a"), 1, Delivered)); !slices.Equal(got, want) {
					r.Errorf("call %d: turns = %v, want %v", i, got, want)
				}
			}
		}},
		{"a parked first delivery blocks the queue", func(r *rig) {
			a := toEndpoint("e", "a", true)
			r.create(30, a, toEndpoint("e", "b", true))
			if turns := r.recordOutcomes(parkedOutcome(a, 100)); len(turns) != 0 {
				r.Errorf("turns = %v, want none", turns)
			}
			r.takeIDs("e", 1, timeAt(100))
			r.deliverInOrder(2, "a", "b")
		}},
	})
}

// deliverInOrder delivers the deliveries of an ordered endpoint and checks that each outcome
// gives the turn to the next one.
func (r *rig) deliverInOrder(sec float64, ids ...string) {
	r.Helper()
	for i, id := range ids {
		remaining := refs(ids[i+1:]...)
		want := remaining[:min(1, len(remaining))]
		if turns := r.recordOutcomes(outcome(newDelivery(id), sec+float64(i), Delivered)); !slices.Equal(turns, want) {
			r.Errorf("after %s the turn is given to %v, want %v", id, turns, want)
		}
	}
}

func attemptedOneAtATime(r *rig) {
	first, second, third, otherEndpoint := toEndpoint("e", "z", true), toEndpoint("e", "y", true), toEndpoint("e", "x", true), toEndpoint("f", "o", true)
	ds := []Delivery{first, second, third, otherEndpoint}
	r.create(30, ds...)
	for i, want := range []Wait{"", WaitsForTurn, WaitsForTurn, ""} {
		if ds[i].WaitsFor != want || r.get(ds[i].ID).WaitsFor != want || ds[i].NextAttemptAt.IsZero() != (want != "") {
			r.Errorf("%s waits for %q, want %q", ds[i].ID, ds[i].WaitsFor, want)
		}
	}
	finish := func(sec float64, d Delivery, state State, want ...Ref) {
		r.Helper()
		if got := r.recordOutcomes(outcome(d, sec, state)); !slices.Equal(got, want) {
			r.Errorf("after %s the turn is given to %v, want %v", d.ID, got, want)
		}
	}
	finish(1, first, Retrying)
	finish(12, first, Dead, refs("y")...)
	if got := r.dueIDs(12, 9); !slices.Equal(got, []string{"y"}) {
		r.Errorf("due deliveries = %v, want y", got)
	}
	if changed, err := r.Replay(r.Context(), refs("z"), timeAt(13), false); err != nil || len(changed) != 1 {
		r.Fatalf("replayed %v, error %v; want 1 delivery", changed, err)
	}
	relaytest.Equal(r, "the wait of the replayed delivery", r.get("z").WaitsFor, WaitsForTurn)
	finish(20, second, Delivered, refs("x")...)
	finish(21, third, Delivered, refs("z")...)
	finish(22, first, Delivered)
	if changed, err := r.Replay(r.Context(), refs("z"), timeAt(30), true); err != nil || len(changed) != 1 {
		r.Fatalf("replayed %v, error %v; want 1 delivery", changed, err)
	}
	if got := r.dueIDs(30, 9); !slices.Equal(slices.Sorted(slices.Values(got)), []string{"o", "z"}) {
		r.Errorf("due deliveries = %v, want o and z", got)
	}
}
