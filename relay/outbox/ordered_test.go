package outbox

import (
	"slices"
	"testing"

	"github.com/penstock/penstock/relay/db"
	"github.com/penstock/penstock/relay/relaytest"
)

func TestOrderedEndpoints(t *testing.T) {
	onEvery(t, db.Options{}, []testCase{
		{"one is attempted at a time, a replay goes to the end", oneAtATime},
		{"of the same delivery created again nothing changes", func(r *rig) {
			ds := []Delivery{to("e", "a", true), to("e", "b", true)}
			r.create(30, ds...)
			created, err := r.Create(r.Context(), []Delivery{to("e", "b", true), to("e", "c", true), to("e", "a", true)}, at(30))
			r.must(err)
			relaytest.Equal(r, "the new deliveries", ids(created), []string{"c"})
			r.inTurn(1, "a", "b", "c")
		}},
		{"one that arrives in an empty line is attempted at once", func(r *rig) {
			r.create(30, to("e", "a", true))
			r.inTurn(1, "a")
			r.create(30, to("e", "b", true))
			if d := r.get("b"); d.Waits != "" || !d.NextAttemptAt.Equal(at(30)) {
				r.Errorf("got %+v", d)
			}
		}},
		{"several that end in one batch give the turn to the one behind them", func(r *rig) {
			for _, id := range []string{"a", "b", "c"} {
				r.create(30, to("e", id, true))
			}
			turns := r.finished(outcome(post("a"), 1, Delivered), outcome(post("b"), 1, Dead))
			if !slices.Equal(turns, refs("c")) {
				r.Errorf("turns %v", turns)
			}
		}},
		{"an outcome that is repeated gives no turn again", func(r *rig) {
			r.create(30, to("e", "a", true), to("e", "b", true), to("e", "c", true))
			for i, want := range [][]Ref{refs("b"), nil} {
				if got := r.finished(outcome(post("a"), 1, Delivered)); !slices.Equal(got, want) {
					r.Errorf("%d: turns %v, want %v", i, got, want)
				}
			}
		}},
		{"a breaker that holds the first holds the line", func(r *rig) {
			a := to("e", "a", true)
			r.create(30, a, to("e", "b", true))
			if turns := r.finished(parkedOutcome(a, 100)); len(turns) != 0 {
				r.Errorf("turns %v", turns)
			}
			r.taken("e", 1, at(100))
			r.inTurn(2, "a", "b")
		}},
	})
}

// inTurn delivers what an ordered endpoint has, each when its turn has come.
func (r *rig) inTurn(sec float64, ids ...string) {
	r.Helper()
	for i, id := range ids {
		next := refs(ids[i+1:]...)
		if turns := r.finished(outcome(post(id), sec+float64(i), Delivered)); !slices.Equal(turns, next[:min(1, len(next))]) {
			r.Errorf("after %s it is the turn of %v", id, turns)
		}
	}
}

func oneAtATime(r *rig) {
	first, second, third, other := to("e", "z", true), to("e", "y", true), to("e", "x", true), to("f", "o", true)
	ds := []Delivery{first, second, third, other}
	r.create(30, ds...)
	for i, want := range []Wait{"", WaitsForTurn, WaitsForTurn, ""} {
		if ds[i].Waits != want || r.get(ds[i].ID).Waits != want || ds[i].NextAttemptAt.IsZero() != (want != "") {
			r.Errorf("%s waits for %q, want %q", ds[i].ID, ds[i].Waits, want)
		}
	}
	turns := func(sec float64, d Delivery, state State, want ...Ref) {
		r.Helper()
		if got := r.finished(outcome(d, sec, state)); !slices.Equal(got, want) {
			r.Errorf("after %s it is the turn of %v, want %v", d.ID, got, want)
		}
	}
	turns(1, first, Retrying)
	turns(12, first, Dead, refs("y")...)
	if got := r.due(12, 9); !slices.Equal(got, []string{"y"}) {
		r.Errorf("due %v", got)
	}
	if changed, err := r.Replay(r.Context(), refs("z"), at(13), false); err != nil || len(changed) != 1 {
		r.Fatalf("changed %v, error %v", changed, err)
	}
	relaytest.Equal(r, "what is replayed goes to the end", r.get("z").Waits, WaitsForTurn)
	turns(20, second, Delivered, refs("x")...)
	turns(21, third, Delivered, refs("z")...)
	turns(22, first, Delivered)
	if changed, err := r.Replay(r.Context(), refs("z"), at(30), true); err != nil || len(changed) != 1 {
		r.Fatalf("changed %v, error %v", changed, err)
	}
	if got := r.due(30, 9); !slices.Equal(slices.Sorted(slices.Values(got)), []string{"o", "z"}) {
		r.Errorf("due %v", got)
	}
}
