package outbox

import (
	"fmt"
	"reflect"
	"slices"
	"testing"
	"time"

	"github.com/penstock/penstock/relay"
	"github.com/penstock/penstock/relay/db"
	"github.com/penstock/penstock/relay/relaytest"
)

func TestDeliveries(t *testing.T) {
	onEvery(t, db.Options{}, []testCase{
		{"a created delivery is loaded as saved, queued and leased", func(r *rig) {
			d := newDelivery("a")
			r.create(30, d)
			want := d
			want.State, want.NextAttemptAt = Queued, timeAt(30)
			relaytest.Equal(r, "the stored delivery", r.get(d.ID), want)
		}},
		{"an SMS of a rule is loaded as saved, and found by number, target and text", func(r *rig) {
			d := Delivery{
				ID: "sms", Account: 1, Kind: KindRule, Relay: "r1", MessageID: "alarm", CreatedAt: timeAt(1), Originator: "Alarm",
				Destination: "447700900123", SMS: &SMS{Originator: "Alarm", To: "447700900123", Text: "Kühlraum <1> & 2"},
			}
			r.create(30, d, newDelivery("a"))
			want := d
			want.State, want.NextAttemptAt = Queued, timeAt(30)
			relaytest.Equal(r, "the stored delivery", r.get(d.ID), want)
			r.recordOutcomes(outcome(d, 5, Dead))
			for _, f := range []Filter{
				{Kind: KindRule}, {Number: "447700900123"}, {Target: "SMS:4477"}, {Query: "kühlraum <1>"}, {Query: "<1> & 2", State: Dead},
			} {
				relaytest.Equal(r, "the listed deliveries", r.listIDs(f), []string{"sms"})
			}
		}},
		{"an existing delivery is not changed or returned as new", func(r *rig) {
			r.create(30, newDelivery("b"))
			changed := newDelivery("b")
			changed.MessageID = "other"
			added, err := r.Create(r.Context(), []Delivery{newDelivery("a"), changed, newDelivery("c")}, timeAt(60))
			r.must(err)
			relaytest.Equal(r, "the new deliveries", ids(added), []string{"a", "c"})
			if got := r.get(changed.ID); got.MessageID != "m-b" || !got.NextAttemptAt.Equal(timeAt(30)) {
				r.Errorf("the existing delivery = %+v, want message m-b and a lease until 30 s", got)
			}
		}},
		{"an unknown delivery and one of another account are not found", func(r *rig) {
			r.create(30, newDelivery("a"))
			for _, acct := range []relay.AccountID{1, 2} {
				id := map[relay.AccountID]string{1: "x", 2: "a"}[acct]
				if _, err := r.Get(r.Context(), acct, id); relay.KindOf(err) != relay.KindNotFound {
					r.Errorf("Get: %v, want kind not found", err)
				}
				if _, _, err := r.Lease(r.Context(), acct, id, timeAt(99), timeAt(100)); relay.KindOf(err) != relay.KindNotFound {
					r.Errorf("Lease: %v, want kind not found", err)
				}
			}
		}},
		{"deliveries are due at the end of their lease or wait, in order over all accounts", func(r *rig) {
			r.create(30, newDelivery("a"))
			r.create(10, inAccount(2, newDelivery("b")))
			r.create(20, inAccount(3, newDelivery("c")), inAccount(3, newDelivery("d")))
			r.recordOutcomes(outcome(inAccount(3, newDelivery("d")), 5, Delivered))
			if got := r.dueIDs(9.999, 10); len(got) != 0 {
				r.Errorf("due before the first lease ends: %v, want none", got)
			}
			if got, want := r.dueIDs(30, 10), []string{"b", "c", "a"}; !slices.Equal(got, want) {
				r.Errorf("due deliveries = %v, want %v", got, want)
			}
			if got, want := r.dueIDs(30, 2), []string{"b", "c"}; !slices.Equal(got, want) {
				r.Errorf("due deliveries with limit 2 = %v, want %v", got, want)
			}
		}},
		{"a delivery is leased only when it is due", func(r *rig) {
			d := newDelivery("a")
			r.create(30, d)
			for _, step := range []struct {
				now  float64
				want bool
			}{{29, false}, {30, true}, {31, false}, {59, false}, {60, true}} {
				got, ok, err := r.Lease(r.Context(), 1, "a", timeAt(step.now), timeAt(step.now+30))
				relaytest.NoError(r, err)
				relaytest.Equal(r, "whether the lease was taken", ok, step.want)
				relaytest.Equal(r, "the leased delivery", got.ID, "a")
			}
		}},
		{"the due deliveries among several are leased together", func(r *rig) {
			r.create(30, newDelivery("a"), newDelivery("b"), newDelivery("ended"))
			r.create(40, newDelivery("later"))
			r.recordOutcomes(outcome(newDelivery("ended"), 5, Delivered))
			refs := []Ref{}
			for _, id := range []string{"later", "b", "none", "ended", "a"} {
				refs = append(refs, Ref{Account: 1, ID: id})
			}
			for _, step := range []struct {
				now  float64
				want []string
			}{{29, nil}, {30, []string{"a", "b"}}, {31, nil}, {40, []string{"later"}}, {60, []string{"a", "b"}}} {
				ds, err := r.LeaseDue(r.Context(), refs, timeAt(step.now), timeAt(step.now+30))
				var got []string
				for _, d := range ds {
					if got = append(got, d.ID); !d.NextAttemptAt.Equal(timeAt(step.now + 30)) {
						r.Errorf("at %v: %s is leased until %v, want 30 s", step.now, d.ID, d.NextAttemptAt)
					}
				}
				if slices.Sort(got); err != nil || !slices.Equal(got, step.want) {
					r.Errorf("at %v: leased %v, error %v; want %v", step.now, got, err, step.want)
				}
			}
		}},
		{"a retry is due at its time, and its try and attempt are recorded", func(r *rig) {
			d := newDelivery("a")
			r.create(30, d)
			o := outcome(d, 1, Retrying)
			r.recordOutcomes(o)
			got := r.get(d.ID)
			relaytest.Equal(r, "the state", got.State, Retrying)
			relaytest.Equal(r, "the tries", got.Tries, 1)
			relaytest.Equal(r, "the reason", got.Reason, o.Reason)
			relaytest.Equal(r, "the time of the next attempt", got.NextAttemptAt, timeAt(11))
			relaytest.Equal(r, "the attempts", got.Attempts, []Attempt{o.Attempt})
			if ids := r.dueIDs(11, 9); !slices.Equal(ids, []string{"a"}) {
				r.Errorf("due deliveries = %v, want a", ids)
			}
		}},
		{"a repeated outcome changes nothing", func(r *rig) {
			d := newDelivery("a")
			r.create(30, d)
			r.recordOutcomes(outcome(d, 1, Retrying), outcome(d, 1, Retrying))
			r.recordOutcomes(outcome(d, 1, Retrying))
			if got := r.get(d.ID); got.Tries != 1 || len(got.Attempts) != 1 {
				r.Errorf("delivery = %+v, want one try with one attempt", got)
			}
		}},
		{"an outcome for an ended delivery only adds its attempt", func(r *rig) {
			d := newDelivery("a")
			r.create(30, d)
			r.recordOutcomes(outcome(d, 1, Delivered))
			r.recordOutcomes(outcome(d, 2, Retrying))
			got := r.get(d.ID)
			if got.State != Delivered || got.Tries != 1 || len(got.Attempts) != 2 || !got.NextAttemptAt.IsZero() {
				r.Errorf("delivery = %+v, want it delivered after one try, with two attempts", got)
			}
			if ids := r.dueIDs(1000, 9); len(ids) != 0 {
				r.Errorf("due deliveries = %v, want none", ids)
			}
		}},
		{"an uncounted attempt does not increase the tries", func(r *rig) {
			d := newDelivery("a")
			r.create(30, d)
			for i := range 3 {
				o := outcome(d, float64(i), Retrying)
				o.Uncounted = true
				r.recordOutcomes(o)
			}
			got := r.get(d.ID)
			if got.Tries != 0 || len(got.Attempts) != 3 || !got.NextAttemptAt.Equal(timeAt(12)) {
				r.Errorf("delivery = %+v, want three attempts, no try and the next attempt at 12 s", got)
			}
		}},
		{"an uncounted outcome that is repeated after another one changes nothing", func(r *rig) {
			d := newDelivery("a")
			r.create(30, d)
			fault := outcome(d, 1, Retrying)
			fault.Uncounted = true
			later := outcome(d, 2, Retrying)
			later.Reason = fault.Reason
			r.recordOutcomes(fault)
			r.recordOutcomes(later)
			r.recordOutcomes(fault)
			got := r.get(d.ID)
			relaytest.Equal(r, "the attempts", got.Attempts, []Attempt{fault.Attempt, later.Attempt})
			relaytest.Equal(r, "the time of the next attempt", got.NextAttemptAt, timeAt(12))
		}},
		{"attempts are sorted by time, to the nanosecond", func(r *rig) {
			d := newDelivery("a")
			r.create(30, d)
			earlier, later := outcome(d, 1, Retrying), outcome(d, 1, Retrying)
			later.Attempt.At = timeAt(1).Add(time.Nanosecond)
			later.Attempt.Duration, later.Attempt.Status, later.Attempt.Response = time.Nanosecond, 0, ""
			later.Attempt.Error, later.Attempt.Reason = "lookup sms.example: no such host", "the host is unknown"
			r.recordOutcomes(later)
			r.recordOutcomes(earlier)
			relaytest.Equal(r, "the attempts", r.get(d.ID).Attempts, []Attempt{earlier.Attempt, later.Attempt})
		}},
		{"an outcome for a deleted delivery is ignored", func(r *rig) {
			r.recordOutcomes(outcome(newDelivery("x"), 1, Delivered))
			n, err := db.Value[int](r.Context(), r.db, "test", "SELECT COUNT(*) FROM delivery_attempt")
			r.must(err)
			relaytest.Equal(r, "the number of attempts", n, 0)
		}},
		{"a current lease is renewed or released, and other leases are not", func(r *rig) {
			r.create(30, newDelivery("a"), newDelivery("b"), newDelivery("c"))
			r.recordOutcomes(outcome(newDelivery("c"), 1, Retrying))
			r.wantRenewed([]string{"a"}, 100, leases(30, "a", "c", "gone")...)
			if err := r.Release(r.Context(), leases(30, "b", "c"), timeAt(5)); err != nil {
				r.Fatal(err)
			}
			if got := r.dueIDs(99, 9); !slices.Equal(got, []string{"b", "c"}) {
				r.Errorf("due at 99 s: %v, want b and c", got)
			}
			r.wantRenewed(nil, 500, leases(30, "b")...)
			if got := r.dueIDs(99, 9); !slices.Equal(got, []string{"b", "c"}) {
				r.Errorf("due at 99 s after a released lease was renewed: %v, want b and c", got)
			}
		}},
		{"a lease that another process has taken since is neither renewed nor released", func(r *rig) {
			r.create(30, newDelivery("a"))
			if _, taken, err := r.Lease(r.Context(), 1, "a", timeAt(31), timeAt(61)); err != nil || !taken {
				r.Fatalf("leased = %v, error %v; want true", taken, err)
			}
			r.wantRenewed(nil, 90, leases(30, "a")...)
			if err := r.Release(r.Context(), leases(30, "a"), timeAt(5)); err != nil {
				r.Fatal(err)
			}
			if got := r.dueIDs(60, 9); len(got) != 0 {
				r.Errorf("due while leased: %v, want none", got)
			}
			r.wantRenewed([]string{"a"}, 90, leases(61, "a")...)
			if got := r.dueIDs(89, 9); len(got) != 0 {
				r.Errorf("due after the renewal: %v, want none", got)
			}
		}},
		{"a replay takes dead deliveries, and delivered ones only on request", func(r *rig) {
			ids := []string{"dead", "delivered", "simulated", "queued"}
			refs := []Ref{{Account: 1, ID: "gone"}}
			for _, id := range ids {
				r.create(30, newDelivery(id))
				refs = append(refs, Ref{Account: 1, ID: id})
			}
			for _, state := range []State{Dead, Delivered, Simulated} {
				r.recordOutcomes(outcome(newDelivery(string(state)), 1, state))
			}
			changed, err := r.Replay(r.Context(), refs, timeAt(40), false)
			if err != nil || !slices.Equal(changed, refs[1:2]) {
				r.Fatalf("changed %v, error %v; want %v", changed, err, refs[1:2])
			}
			got := r.get("dead")
			if got.State != Queued || got.Tries != 0 || len(got.Attempts) != 1 || !got.NextAttemptAt.Equal(timeAt(40)) || got.Reason != "" {
				r.Errorf("delivery = %+v, want it queued at 40 s without tries and reason, with one attempt", got)
			}
			if changed, err = r.Replay(r.Context(), refs, timeAt(41), true); err != nil || !slices.Equal(changed, refs[2:4]) {
				r.Fatalf("changed %v, error %v; want %v", changed, err, refs[2:4])
			}
			if got := r.dueIDs(41, 9); len(got) != 4 {
				r.Errorf("due deliveries = %v, want 4", got)
			}
		}},
		{"deliveries are counted by state over all accounts", func(r *rig) {
			r.create(30, newDelivery("a"), inAccount(2, newDelivery("b")), inAccount(2, newDelivery("c")))
			r.recordOutcomes(outcome(inAccount(2, newDelivery("c")), 1, Dead))
			got, err := r.Counts(r.Context())
			want := map[State]int{Queued: 2, Retrying: 0, Delivered: 0, Simulated: 0, Dead: 1}
			if err != nil || !reflect.DeepEqual(got, want) {
				r.Errorf("counts = %v, error %v; want %v", got, err, want)
			}
		}},
	})
}

func TestDeliveriesExpire(t *testing.T) {
	setUp := func(r *rig) {
		r.create(30, newDelivery("dead"), newDelivery("delivered"), newDelivery("again"), newDelivery("queued"))
		r.recordOutcomes(outcome(newDelivery("dead"), 1, Dead), outcome(newDelivery("delivered"), 1, Delivered), outcome(newDelivery("again"), 1, Dead))
		changed, err := r.Replay(r.Context(), refs("again"), timeAt(2), false)
		if err != nil || len(changed) != 1 {
			r.Fatalf("changed %v, error %v; want 1 delivery", changed, err)
		}
	}
	wantStored := func(r *rig, want ...string) {
		r.Helper()
		for range 2 {
			if got := r.listIDs(Filter{}); !slices.Equal(got, want) {
				r.Errorf("listed %v, want %v", got, want)
			}
			for _, id := range []string{"dead", "delivered", "again", "queued"} {
				_, err := r.Get(r.Context(), 1, id)
				_, _, errLease := r.Lease(r.Context(), 1, id, timeAt(0), timeAt(1))
				ds, errOf := r.OfMessage(r.Context(), "m-"+id)
				stored := slices.Contains(want, id)
				if stored != (err == nil) || stored != (errLease == nil) || stored != (len(ds) == 1) || errOf != nil {
					r.Errorf("%s: want stored = %v, got errors %v (Get) and %v (Lease), deliveries of its message %v, error %v", id, stored, err, errLease, ds, errOf)
				}
			}
			r.must(r.Sweep(r.Context()))
		}
		counts, err := r.Counts(r.Context())
		n := 0
		for _, c := range counts {
			n += c
		}
		if err != nil || n != len(want) {
			r.Errorf("counts = %v, error %v; want %d deliveries in total", counts, err, len(want))
		}
	}
	onEvery(t, db.Options{Retention: time.Hour}, []testCase{
		{"delivered deliveries expire after the retention, dead and replayed ones do not", func(r *rig) {
			setUp(r)
			*r.now = timeAt(3599)
			wantStored(r, "queued", "delivered", "dead", "again")
			*r.now = timeAt(3600)
			wantStored(r, "queued", "dead", "again")
			changed, err := r.Replay(r.Context(), refs("delivered"), timeAt(3600), true)
			if err != nil || len(changed) != 0 {
				r.Errorf("replayed %v, error %v; want none", changed, err)
			}
		}},
	})
	onEvery(t, db.Options{Retention: time.Hour, DeadRetention: time.Minute}, []testCase{
		{"dead deliveries expire after their retention", func(r *rig) {
			setUp(r)
			*r.now = timeAt(61)
			wantStored(r, "queued", "delivered", "again")
			if got := r.listIDs(Filter{State: Dead, Query: "m-"}); len(got) != 0 {
				r.Errorf("found expired deliveries %v, want none", got)
			}
		}},
		{"a sweep deletes all expired deliveries", func(r *rig) {
			const n = db.MaxSweep + 10
			var outcomes []Outcome
			ds := make([]Delivery, n)
			for i := range ds {
				ds[i] = newDelivery(fmt.Sprint(i))
				outcomes = append(outcomes, outcome(ds[i], 1, Dead))
			}
			r.create(30, ds...)
			r.recordOutcomes(outcomes...)
			*r.now = timeAt(61)
			r.must(r.Sweep(r.Context()))
			for _, table := range []string{"delivery", "delivery_attempt", "delivery_dead"} {
				if n, err := db.Value[int](r.Context(), r.db, "test", "SELECT COUNT(*) FROM "+table); err != nil || n != 0 {
					r.Errorf("%s has %d rows, error %v; want 0", table, n, err)
				}
			}
		}},
	})
}
