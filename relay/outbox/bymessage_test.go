package outbox

import (
	"slices"
	"testing"
	"time"

	"github.com/penstock/penstock/relay/db"
)

func TestDeliveriesAreFoundByTheirMessage(t *testing.T) {
	onEvery(t, db.Options{Retention: time.Hour}, []testCase{{"deliveries of all accounts are returned, oldest first", func(r *rig) {
		withMessage := func(d Delivery, id string) Delivery { d.MessageID = id; return d }
		a, c := withMessage(createdAt(newDelivery("a"), 2), "m1"), withMessage(newDelivery("c"), "m2")
		r.create(30, a, withMessage(inAccount(2, createdAt(newDelivery("b"), 1)), "m1"), c, withMessage(newDelivery("none"), ""))
		if _, err := r.Create(r.Context(), []Delivery{a}, timeAt(30)); err != nil { // a duplicate
			r.Fatal(err)
		}
		r.recordOutcomes(outcome(c, 1, Delivered))
		*r.now = timeAt(3600)
		for message, want := range map[string][]string{"m1": {"b", "a"}, "m2": nil, "m3": nil, "": nil} {
			ds, err := r.OfMessage(r.Context(), message)
			var got []string
			for _, d := range ds {
				got = append(got, d.ID)
			}
			if err != nil || !slices.Equal(got, want) {
				r.Errorf("deliveries of message %q = %q, error %v; want %q", message, got, err, want)
			}
		}
	}}})
}
