package outbox

import (
	"testing"

	"github.com/penstock/penstock/relay/db"
	"github.com/penstock/penstock/relay/db/dbtest"
	"github.com/penstock/penstock/relay/relaytest"
)

func TestADeliveryThatDoesNotOpenEndsNoOther(t *testing.T) {
	onEvery(t, db.Options{}, []testCase{{"in leases and lists, and is sent once it opens again", func(r *rig) {
		r.db.SetSealer(dbtest.Sealer{})
		defer r.db.SetSealer(nil)
		a, b, c := created(to("e", "a", false), 1), created(to("e", "b", false), 2), created(to("e", "c", false), 3)
		b.MessageID = a.MessageID
		r.create(30, a, b, c)
		restore := dbtest.Tamper(t, r.db, "delivery", "doc", "id = 'b'")
		unopened := func(label string, ds []Delivery, err error, want map[string]bool) {
			r.Helper()
			r.must(err)
			got := make(map[string]bool)
			for _, d := range ds {
				got[d.ID] = d.Unopened
				if d.Unopened != (d.Target() == "") {
					r.Errorf("%s: %s goes to %q", label, d.ID, d.Target())
				}
			}
			relaytest.Equal(r, label+": which do not open", got, want)
		}
		all := map[string]bool{"a": false, "b": true, "c": false}

		// 1. Leased, one by one and together.
		ds, err := r.LeaseDue(r.Context(), refs("a", "b", "c"), at(31), at(60))
		unopened("LeaseDue", ds, err, all)
		d, taken, err := r.Lease(r.Context(), 1, "b", at(61), at(90))
		unopened("Lease", []Delivery{d}, err, map[string]bool{"b": true})
		if !taken {
			r.Error("Lease: not taken")
		}
		r.finished(parkedOutcome(a, 100), parkedOutcome(b, 100), parkedOutcome(c, 100))
		ds, err = r.Take(r.Context(), ParkedEndpoint{Account: 1, Endpoint: "e"}, 9, at(100), at(500))
		unopened("Take", ds, err, all)

		// 2. Dead, found by its reason, and listed in its place.
		dead := outcome(b, 501, Dead)
		dead.Reason = UnopenedReason
		r.finished(dead)
		relaytest.Equal(r, "dead deliveries with the reason", r.listed(Filter{State: Dead, Reason: "does not open", Limit: 9}), []string{"b"})
		ds, _, err = r.List(r.Context(), Filter{Account: 1, Limit: 9})
		unopened("List", ds, err, all)
		relaytest.Equal(r, "order of the list", r.listed(Filter{Account: 1, Limit: 1}), []string{"c", "b", "a"})
		ds, err = r.OfMessage(r.Context(), a.MessageID)
		unopened("OfMessage", ds, err, map[string]bool{"a": false, "b": true})

		// 3. Replayed when it opens again.
		restore()
		changed, err := r.Replay(r.Context(), refs("b"), at(600), false)
		r.must(err)
		relaytest.Equal(r, "replayed", changed, refs("b"))
		ds, err = r.LeaseDue(r.Context(), refs("b"), at(601), at(700))
		unopened("LeaseDue after the replay", ds, err, map[string]bool{"b": false})
	}}})
}
