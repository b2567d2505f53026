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
		{"a created delivery is loaded as it was saved, queued and leased", func(r *rig) {
			d := post("a")
			r.create(30, d)
			want := d
			want.State, want.NextAttemptAt = Queued, at(30)
			relaytest.Equal(r, "the stored delivery", r.get(d.ID), want)
		}},
		{"an SMS of a rule is loaded as it was saved, and found by its number, target and text", func(r *rig) {
			d := Delivery{
				ID: "sms", Account: 1, Kind: KindRule, Relay: "r1", MessageID: "alarm", CreatedAt: at(1), Originator: "Alarm",
				Destination: "447700900123", SMS: &SMS{Originator: "Alarm", To: "447700900123", Text: "Kühlraum <1> & 2"},
			}
			r.create(30, d, post("a"))
			want := d
			want.State, want.NextAttemptAt = Queued, at(30)
			relaytest.Equal(r, "the stored delivery", r.get(d.ID), want)
			r.finished(outcome(d, 5, Dead))
			for _, f := range []Filter{
				{Kind: KindRule}, {Number: "447700900123"}, {Target: "SMS:4477"}, {Query: "kühlraum <1>"}, {Query: "<1> & 2", State: Dead},
			} {
				relaytest.Equal(r, "result of listed", r.listed(f), []string{"sms"})
			}
		}},
		{"one that exists is left alone and reported", func(r *rig) {
			r.create(30, post("b"))
			changed := post("b")
			changed.MessageID = "other"
			added, err := r.Create(r.Context(), []Delivery{post("a"), changed, post("c")}, at(60))
			r.must(err)
			relaytest.Equal(r, "the new deliveries", ids(added), []string{"a", "c"})
			if got := r.get(changed.ID); got.MessageID != "m-b" || !got.NextAttemptAt.Equal(at(30)) {
				r.Errorf("changed: %+v", got)
			}
		}},
		{"an unknown delivery and one of another account are not found", func(r *rig) {
			r.create(30, post("a"))
			for _, acct := range []relay.AccountID{1, 2} {
				id := map[relay.AccountID]string{1: "x", 2: "a"}[acct]
				if _, err := r.Get(r.Context(), acct, id); relay.KindOf(err) != relay.KindNotFound {
					r.Errorf("get: %v", err)
				}
				if _, _, err := r.Lease(r.Context(), acct, id, at(99), at(100)); relay.KindOf(err) != relay.KindNotFound {
					r.Errorf("lease: %v", err)
				}
			}
		}},
		{"due are those whose lease or wait is over, oldest first over all accounts", func(r *rig) {
			r.create(30, post("a"))
			r.create(10, of(2, post("b")))
			r.create(20, of(3, post("c")), of(3, post("d")))
			r.finished(outcome(of(3, post("d")), 5, Delivered))
			if got := r.due(9.999, 10); len(got) != 0 {
				r.Errorf("too early: %v", got)
			}
			if got, want := r.due(30, 10), []string{"b", "c", "a"}; !slices.Equal(got, want) {
				r.Errorf("got %v, want %v", got, want)
			}
			if got, want := r.due(30, 2), []string{"b", "c"}; !slices.Equal(got, want) {
				r.Errorf("limited: got %v, want %v", got, want)
			}
		}},
		{"only one of two takes a lease, and only once it is due", func(r *rig) {
			d := post("a")
			r.create(30, d)
			for _, step := range []struct {
				now  float64
				want bool
			}{{29, false}, {30, true}, {31, false}, {59, false}, {60, true}} {
				got, ok, err := r.Lease(r.Context(), 1, "a", at(step.now), at(step.now+30))
				relaytest.NoError(r, err)
				relaytest.Equal(r, "whether the lease was taken", ok, step.want)
				relaytest.Equal(r, "the leased delivery", got.ID, "a")
			}
		}},
		{"those of many that are due are leased together", func(r *rig) {
			r.create(30, post("a"), post("b"), post("ended"))
			r.create(40, post("later"))
			r.finished(outcome(post("ended"), 5, Delivered))
			refs := []Ref{}
			for _, id := range []string{"later", "b", "none", "ended", "a"} {
				refs = append(refs, Ref{Account: 1, ID: id})
			}
			for _, step := range []struct {
				now  float64
				want []string
			}{{29, nil}, {30, []string{"a", "b"}}, {31, nil}, {40, []string{"later"}}, {60, []string{"a", "b"}}} {
				ds, err := r.LeaseDue(r.Context(), refs, at(step.now), at(step.now+30))
				var got []string
				for _, d := range ds {
					if got = append(got, d.ID); !d.NextAttemptAt.Equal(at(step.now + 30)) {
						r.Errorf("at %v: %s is leased until %v", step.now, d.ID, d.NextAttemptAt)
					}
				}
				if slices.Sort(got); err != nil || !slices.Equal(got, step.want) {
					r.Errorf("at %v: leased %v, %v, want %v", step.now, got, err, step.want)
				}
			}
		}},
		{"a retry waits for its time, counts and keeps its attempt", func(r *rig) {
			d := post("a")
			r.create(30, d)
			o := outcome(d, 1, Retrying)
			r.finished(o)
			got := r.get(d.ID)
			relaytest.Equal(r, "result of get, State", got.State, Retrying)
			relaytest.Equal(r, "result of get, Tries", got.Tries, 1)
			relaytest.Equal(r, "result of get, Reason", got.Reason, o.Reason)
			relaytest.Equal(r, "result of get, NextAttemptAt", got.NextAttemptAt, at(11))
			relaytest.Equal(r, "attempts, got.Attempts", got.Attempts, []Attempt{o.Attempt})
			if ids := r.due(11, 9); !slices.Equal(ids, []string{"a"}) {
				r.Errorf("due %v", ids)
			}
		}},
		{"the same outcome twice changes nothing the second time", func(r *rig) {
			d := post("a")
			r.create(30, d)
			r.finished(outcome(d, 1, Retrying), outcome(d, 1, Retrying))
			r.finished(outcome(d, 1, Retrying))
			if got := r.get(d.ID); got.Tries != 1 || len(got.Attempts) != 1 {
				r.Errorf("got %+v", got)
			}
		}},
		{"an outcome for an ended delivery only adds its attempt", func(r *rig) {
			d := post("a")
			r.create(30, d)
			r.finished(outcome(d, 1, Delivered))
			r.finished(outcome(d, 2, Retrying))
			got := r.get(d.ID)
			if got.State != Delivered || got.Tries != 1 || len(got.Attempts) != 2 || !got.NextAttemptAt.IsZero() {
				r.Errorf("got %+v", got)
			}
			if ids := r.due(1000, 9); len(ids) != 0 {
				r.Errorf("due %v", ids)
			}
		}},
		{"a fault of our own counts nothing", func(r *rig) {
			d := post("a")
			r.create(30, d)
			for i := range 3 {
				o := outcome(d, float64(i), Retrying)
				o.Uncounted = true
				r.finished(o)
			}
			got := r.get(d.ID)
			if got.Tries != 0 || len(got.Attempts) != 3 || !got.NextAttemptAt.Equal(at(12)) {
				r.Errorf("got %+v", got)
			}
		}},
		{"a fault of our own that comes again after another outcome changes nothing", func(r *rig) {
			d := post("a")
			r.create(30, d)
			fault := outcome(d, 1, Retrying)
			fault.Uncounted = true
			later := outcome(d, 2, Retrying)
			later.Reason = fault.Reason
			r.finished(fault)
			r.finished(later)
			r.finished(fault)
			got := r.get(d.ID)
			relaytest.Equal(r, "the attempts", got.Attempts, []Attempt{fault.Attempt, later.Attempt})
			relaytest.Equal(r, "the time of the next attempt", got.NextAttemptAt, at(12))
		}},
		{"attempts are in the order of their times, to the nanosecond", func(r *rig) {
			d := post("a")
			r.create(30, d)
			first, second := outcome(d, 1, Retrying), outcome(d, 1, Retrying)
			second.Attempt.At = at(1).Add(time.Nanosecond)
			second.Attempt.Duration, second.Attempt.Status, second.Attempt.Response = time.Nanosecond, 0, ""
			second.Attempt.Error, second.Attempt.Reason = "lookup sms.example: no such host", "the host is unknown"
			r.finished(second)
			r.finished(first)
			relaytest.Equal(r, "the attempts", r.get(d.ID).Attempts, []Attempt{first.Attempt, second.Attempt})
		}},
		{"an outcome for a delivery that is gone is no error and leaves no attempt", func(r *rig) {
			r.finished(outcome(post("x"), 1, Delivered))
			n, err := db.Value[int](r.Context(), r.db, "test", "SELECT COUNT(*) FROM delivery_attempt")
			r.must(err)
			relaytest.Equal(r, "the number of attempts", n, 0)
		}},
		{"a lease that runs is renewed or given back, others stay", func(r *rig) {
			r.create(30, post("a"), post("b"), post("c"))
			r.finished(outcome(post("c"), 1, Retrying))
			r.renewed([]string{"a"}, 100, leases(30, "a", "c", "gone")...)
			if err := r.Release(r.Context(), leases(30, "b", "c"), at(5)); err != nil {
				r.Fatal(err)
			}
			if got := r.due(99, 9); !slices.Equal(got, []string{"b", "c"}) {
				r.Errorf("due at 99: %v", got)
			}
			r.renewed(nil, 500, leases(30, "b")...)
			if got := r.due(99, 9); !slices.Equal(got, []string{"b", "c"}) {
				r.Errorf("a lease that was given back was renewed: %v", got)
			}
		}},
		{"a lease that another process has taken since is his", func(r *rig) {
			r.create(30, post("a"))
			if _, taken, err := r.Lease(r.Context(), 1, "a", at(31), at(61)); err != nil || !taken {
				r.Fatalf("taken %v, error %v", taken, err)
			}
			r.renewed(nil, 90, leases(30, "a")...)
			if err := r.Release(r.Context(), leases(30, "a"), at(5)); err != nil {
				r.Fatal(err)
			}
			if got := r.due(60, 9); len(got) != 0 {
				r.Errorf("due while it is leased: %v", got)
			}
			r.renewed([]string{"a"}, 90, leases(61, "a")...)
			if got := r.due(89, 9); len(got) != 0 {
				r.Errorf("due after it was renewed: %v", got)
			}
		}},
		{"a replay takes the dead, and the delivered only when asked to", func(r *rig) {
			ids := []string{"dead", "delivered", "simulated", "queued"}
			refs := []Ref{{Account: 1, ID: "gone"}}
			for _, id := range ids {
				r.create(30, post(id))
				refs = append(refs, Ref{Account: 1, ID: id})
			}
			for _, state := range []State{Dead, Delivered, Simulated} {
				r.finished(outcome(post(string(state)), 1, state))
			}
			changed, err := r.Replay(r.Context(), refs, at(40), false)
			if err != nil || !slices.Equal(changed, refs[1:2]) {
				r.Fatalf("changed %v, error %v", changed, err)
			}
			got := r.get("dead")
			if got.State != Queued || got.Tries != 0 || len(got.Attempts) != 1 || !got.NextAttemptAt.Equal(at(40)) || got.Reason != "" {
				r.Errorf("got %+v", got)
			}
			if changed, err = r.Replay(r.Context(), refs, at(41), true); err != nil || !slices.Equal(changed, refs[2:4]) {
				r.Fatalf("changed %v, error %v", changed, err)
			}
			if got := r.due(41, 9); len(got) != 4 {
				r.Errorf("due %v", got)
			}
		}},
		{"counts are by state over all accounts", func(r *rig) {
			r.create(30, post("a"), of(2, post("b")), of(2, post("c")))
			r.finished(outcome(of(2, post("c")), 1, Dead))
			got, err := r.Counts(r.Context())
			want := map[State]int{Queued: 2, Retrying: 0, Delivered: 0, Simulated: 0, Dead: 1}
			if err != nil || !reflect.DeepEqual(got, want) {
				r.Errorf("got %v, error %v", got, err)
			}
		}},
	})
}

func TestDeliveriesExpire(t *testing.T) {
	ended := func(r *rig) {
		r.create(30, post("dead"), post("delivered"), post("again"), post("queued"))
		r.finished(outcome(post("dead"), 1, Dead), outcome(post("delivered"), 1, Delivered), outcome(post("again"), 1, Dead))
		changed, err := r.Replay(r.Context(), refs("again"), at(2), false)
		if err != nil || len(changed) != 1 {
			r.Fatalf("changed %v, error %v", changed, err)
		}
	}
	left := func(r *rig, want ...string) {
		r.Helper()
		for range 2 {
			if got := r.listed(Filter{}); !slices.Equal(got, want) {
				r.Errorf("listed %v, want %v", got, want)
			}
			for _, id := range []string{"dead", "delivered", "again", "queued"} {
				_, err := r.Get(r.Context(), 1, id)
				_, _, errLease := r.Lease(r.Context(), 1, id, at(0), at(1))
				of, errOf := r.OfMessage(r.Context(), "m-"+id)
				kept := slices.Contains(want, id)
				if kept != (err == nil) || kept != (errLease == nil) || kept != (len(of) == 1) || errOf != nil {
					r.Errorf("%s: kept %v, get %v, lease %v, of its message %v %v", id, kept, err, errLease, of, errOf)
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
			r.Errorf("counts %v, error %v", counts, err)
		}
	}
	onEvery(t, db.Options{Retention: time.Hour}, []testCase{
		{"what arrived after its retention, what is dead or replayed does not", func(r *rig) {
			ended(r)
			*r.now = at(3599)
			left(r, "queued", "delivered", "dead", "again")
			*r.now = at(3600)
			left(r, "queued", "dead", "again")
			changed, err := r.Replay(r.Context(), refs("delivered"), at(3600), true)
			if err != nil || len(changed) != 0 {
				r.Errorf("replayed: %v, error %v", changed, err)
			}
		}},
	})
	onEvery(t, db.Options{Retention: time.Hour, DeadRetention: time.Minute}, []testCase{
		{"what is dead if a retention says so", func(r *rig) {
			ended(r)
			*r.now = at(61)
			left(r, "queued", "delivered", "again")
			if got := r.listed(Filter{State: Dead, Query: "m-"}); len(got) != 0 {
				r.Errorf("found %v", got)
			}
		}},
		{"a sweep deletes all there are", func(r *rig) {
			const n = db.MaxSweep + 10
			var os []Outcome
			ds := make([]Delivery, n)
			for i := range ds {
				ds[i] = post(fmt.Sprint(i))
				os = append(os, outcome(ds[i], 1, Dead))
			}
			r.create(30, ds...)
			r.finished(os...)
			*r.now = at(61)
			r.must(r.Sweep(r.Context()))
			for _, table := range []string{"delivery", "delivery_attempt", "delivery_dead"} {
				if n, err := db.Value[int](r.Context(), r.db, "test", "SELECT COUNT(*) FROM "+table); err != nil || n != 0 {
					r.Errorf("%s has %d rows, error %v", table, n, err)
				}
			}
		}},
	})
}
