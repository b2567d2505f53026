package outbox

import (
	"testing"

	"github.com/penstock/penstock/relay/db"
	"github.com/penstock/penstock/relay/db/dbtest"
	"github.com/penstock/penstock/relay/relaytest"
)

func TestAnUndecryptableDeliveryDoesNotFailOthers(t *testing.T) {
	onEvery(t, db.Options{}, []testCase{{"in leases and lists, and is sent once it can be decrypted", func(r *rig) {
		r.db.SetSealer(dbtest.Sealer{})
		defer r.db.SetSealer(nil)
		a, b, c := createdAt(toEndpoint("e", "a", false), 1), createdAt(toEndpoint("e", "b", false), 2), createdAt(toEndpoint("e", "c", false), 3)
		b.MessageID = a.MessageID
		r.create(30, a, b, c)
		restore := dbtest.Tamper(t, r.db, "delivery", "doc", "id = 'b'")
		wantUndecryptable := func(label string, ds []Delivery, err error, want map[string]bool) {
			r.Helper()
			r.must(err)
			got := make(map[string]bool)
			for _, d := range ds {
				got[d.ID] = d.Undecryptable
				if d.Undecryptable != (d.Target() == "") {
					r.Errorf("%s: %s: undecryptable = %t, target = %q", label, d.ID, d.Undecryptable, d.Target())
				}
			}
			relaytest.Equal(r, label+": undecryptable deliveries", got, want)
		}
		allDeliveries := map[string]bool{"a": false, "b": true, "c": false}

		// 1. Lease the deliveries one by one and together.
		ds, err := r.LeaseDue(r.Context(), refs("a", "b", "c"), timeAt(31), timeAt(60))
		wantUndecryptable("LeaseDue", ds, err, allDeliveries)
		d, taken, err := r.Lease(r.Context(), 1, "b", timeAt(61), timeAt(90))
		wantUndecryptable("Lease", []Delivery{d}, err, map[string]bool{"b": true})
		if !taken {
			r.Error("Lease did not lease b")
		}
		r.recordOutcomes(parkedOutcome(a, 100), parkedOutcome(b, 100), parkedOutcome(c, 100))
		ds, err = r.LeaseParked(r.Context(), ParkedEndpoint{Account: 1, Endpoint: "e"}, 9, timeAt(100), timeAt(500))
		wantUndecryptable("LeaseParked", ds, err, allDeliveries)

		// 2. List the delivery after it has died.
		dead := outcome(b, 501, Dead)
		dead.Reason = UndecryptableReason
		r.recordOutcomes(dead)
		relaytest.Equal(r, "dead deliveries with the reason", r.listIDs(Filter{State: Dead, Reason: "cannot be decrypted", Limit: 9}), []string{"b"})
		ds, _, err = r.List(r.Context(), Filter{Account: 1, Limit: 9})
		wantUndecryptable("List", ds, err, allDeliveries)
		relaytest.Equal(r, "order of the list", r.listIDs(Filter{Account: 1, Limit: 1}), []string{"c", "b", "a"})
		ds, err = r.OfMessage(r.Context(), a.MessageID)
		wantUndecryptable("OfMessage", ds, err, map[string]bool{"a": false, "b": true})

		// 3. Replay the delivery once it can be decrypted.
		restore()
		changed, err := r.Replay(r.Context(), refs("b"), timeAt(600), false)
		r.must(err)
		relaytest.Equal(r, "the replayed deliveries", changed, refs("b"))
		ds, err = r.LeaseDue(r.Context(), refs("b"), timeAt(601), timeAt(700))
		wantUndecryptable("LeaseDue after the replay", ds, err, map[string]bool{"b": false})
	}}})
}
