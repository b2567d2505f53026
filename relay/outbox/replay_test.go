package outbox

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/penstock/penstock/relay/db"
	"github.com/penstock/penstock/relay/relaytest"
)

func TestReplayAllReadsAllPages(t *testing.T) {
	onEvery(t, db.Options{}, []testCase{{"chunk by chunk, regardless of limit and cursor", func(r *rig) {
		var ds []Delivery
		var outcomes []Outcome
		for i := range 2*chunkSize + 1 {
			d := createdAt(newDelivery(fmt.Sprintf("%04d", i)), float64(i))
			ds, outcomes = append(ds, d), append(outcomes, outcome(d, 1, Dead))
		}
		r.create(30, ds...)
		r.recordOutcomes(outcomes...)
		n, err := r.ReplayAll(r.Context(), Filter{Relay: "g1", Limit: 1, Cursor: "x"}, true, func() time.Time { return timeAt(60) })
		r.must(err)
		relaytest.Equal(r, "the number of replayed deliveries", n, len(ds))
		relaytest.Equal(r, "the number of queued deliveries", relaytest.Must(r.Counts(r.Context()))(r.T)[Queued], len(ds))
	}}})
}

func TestReplayAllReplaysDeadDeliveriesByDefault(t *testing.T) {
	onEvery(t, db.Options{}, []testCase{{"by state", func(r *rig) {
		for _, tc := range []struct {
			state     State
			delivered bool
			want      []string
		}{{"", false, []string{"dead"}}, {"", true, []string{"dead", "delivered", "simulated"}}, {Delivered, true, []string{"delivered"}}, {Simulated, false, nil}} {
			r.must(r.db.Run(r.Context(), "test", "DELETE FROM delivery"))
			r.must(r.db.Run(r.Context(), "test", "DELETE FROM delivery_attempt"))
			for _, state := range []State{Dead, Delivered, Simulated} {
				d := newDelivery(string(state))
				r.create(30, d)
				r.recordOutcomes(outcome(d, 1, state))
			}
			_, err := r.ReplayAll(r.Context(), Filter{State: tc.state}, tc.delivered, func() time.Time { return timeAt(60) })
			r.must(err)
			relaytest.Equal(r, fmt.Sprintf("the due deliveries for state %q, delivered %v", tc.state, tc.delivered), slices.Sorted(slices.Values(r.dueIDs(60, 9))), slices.Sorted(slices.Values(tc.want)))
		}
	}}})
}

func TestReplayAllReturnsTheErrorOfTheStore(t *testing.T) {
	s, store, _ := newSender(t)
	relaytest.NoError(t, s.Send(t.Context(), []Delivery{newDelivery("a")}), store.db.Close())
	if n, err := store.ReplayAll(t.Context(), Filter{}, false, time.Now); err == nil || n != 0 {
		t.Errorf("replayed %d, error %v; want 0 and the error of the store", n, err)
	}
}
