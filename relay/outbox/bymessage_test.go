package outbox

import (
	"slices"
	"testing"
	"time"

	"github.com/penstock/penstock/relay/db"
)

func TestDeliveriesAreFoundByTheirMessage(t *testing.T) {
	onEvery(t, db.Options{Retention: time.Hour}, []testCase{{"oldest first, of all accounts", func(r *rig) {
		about := func(d Delivery, message string) Delivery { d.MessageID = message; return d }
		a, c := about(created(post("a"), 2), "m1"), about(post("c"), "m2")
		r.create(30, a, about(of(2, created(post("b"), 1)), "m1"), c, about(post("none"), ""))
		if _, err := r.Create(r.Context(), []Delivery{a}, at(30)); err != nil { // once more
			r.Fatal(err)
		}
		r.finished(outcome(c, 1, Delivered))
		*r.now = at(3600)
		for message, want := range map[string][]string{"m1": {"b", "a"}, "m2": nil, "m3": nil, "": nil} {
			ds, err := r.OfMessage(r.Context(), message)
			var got []string
			for _, d := range ds {
				got = append(got, d.ID)
			}
			if err != nil || !slices.Equal(got, want) {
				r.Errorf("%s: %q, error %v", message, got, err)
			}
		}
	}}})
}
