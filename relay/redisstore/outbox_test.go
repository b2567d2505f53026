package redisstore

import (
	"fmt"
	"reflect"
	"slices"
	"testing"
	"time"

	"github.com/penstock/penstock/relay"
	"github.com/penstock/penstock/relay/account"
	"github.com/penstock/penstock/relay/outbox"
)

// post is a delivery of account 1 with everything in it.
func post(id string) outbox.Delivery {
	return outbox.Delivery{
		ID: id, Account: 1, Kind: outbox.KindRelay, Relay: "g1", MessageID: "m-" + id, CreatedAt: at(0),
		Request: &outbox.Request{
			Method: "POST", URL: "https://example.com/in?a=1&b=<2>", ContentType: "text/plain",
			Headers: map[string]string{"X-A": "b"}, Body: []byte("Grüße {\"}"),
		},
	}
}

func of(acct account.ID, d outbox.Delivery) outbox.Delivery {
	d.Account = acct
	return d
}

func created(d outbox.Delivery, s float64) outbox.Delivery {
	d.CreatedAt = at(s)
	return d
}

func create(t testing.TB, s *Outbox, lease time.Time, ds ...outbox.Delivery) {
	t.Helper()
	existing, err := s.Create(t.Context(), ds, lease)
	if err != nil || len(existing) > 0 {
		t.Fatalf("create: existing %v, error %v", existing, err)
	}
}

func outcome(d outbox.Delivery, s float64, state outbox.State) outbox.Outcome {
	o := outbox.Outcome{
		ID: d.ID, Account: d.Account, State: state, Reason: string(state) + " for a test",
		Attempt: outbox.Attempt{At: at(s), Duration: time.Millisecond, Status: 500, Response: `say "no", <you>`},
	}
	if !state.Ended() {
		o.NextAttemptAt = at(s + 10)
	}
	return o
}

func finish(t testing.TB, s *Outbox, os ...outbox.Outcome) {
	t.Helper()
	if _, err := s.Finish(t.Context(), os); err != nil {
		t.Fatal(err)
	}
}

func get(t testing.TB, s *Outbox, d outbox.Delivery) outbox.Delivery {
	t.Helper()
	got, err := s.Get(t.Context(), d.Account, d.ID)
	if err != nil {
		t.Fatal(err)
	}
	return got
}

func due(t testing.TB, s *Outbox, sec float64, limit int) []string {
	t.Helper()
	refs, err := s.Due(t.Context(), at(sec), limit)
	if err != nil {
		t.Fatal(err)
	}
	ids := []string{}
	for _, r := range refs {
		ids = append(ids, r.ID)
	}
	return ids
}

func TestOutbox(t *testing.T) {
	cases := []struct {
		name string
		test func(t *testing.T, s *Outbox)
	}{
		{"a created delivery is loaded as it was saved, queued and leased", func(t *testing.T, s *Outbox) {
			d := post("a")
			create(t, s, at(30), d)
			want := d
			want.State, want.NextAttemptAt = outbox.Queued, at(30)
			if got := get(t, s, d); !reflect.DeepEqual(got, want) {
				t.Errorf("got  %+v\nwant %+v", got, want)
			}
		}},
		{"one that exists is left alone and reported", func(t *testing.T, s *Outbox) {
			create(t, s, at(30), post("b"))
			changed := post("b")
			changed.MessageID = "other"
			existing, err := s.Create(t.Context(), []outbox.Delivery{post("a"), changed, post("c")}, at(60))
			if err != nil || !slices.Equal(existing, []int{1}) {
				t.Fatalf("existing %v, error %v", existing, err)
			}
			if got := get(t, s, changed); got.MessageID != "m-b" || !got.NextAttemptAt.Equal(at(30)) {
				t.Errorf("changed: %+v", got)
			}
		}},
		{"an unknown delivery and one of another account are not found", func(t *testing.T, s *Outbox) {
			create(t, s, at(30), post("a"))
			for _, acct := range []account.ID{1, 2} {
				id := map[account.ID]string{1: "x", 2: "a"}[acct]
				if _, err := s.Get(t.Context(), acct, id); relay.KindOf(err) != relay.KindNotFound {
					t.Errorf("get: %v", err)
				}
				if _, _, err := s.Lease(t.Context(), acct, id, at(99), at(100)); relay.KindOf(err) != relay.KindNotFound {
					t.Errorf("lease: %v", err)
				}
			}
		}},
		{"due are those whose lease or wait is over, oldest first over all accounts", func(t *testing.T, s *Outbox) {
			create(t, s, at(30), post("a"))
			create(t, s, at(10), of(2, post("b")))
			create(t, s, at(20), of(3, post("c")), of(3, post("d")))
			finish(t, s, outcome(of(3, post("d")), 5, outbox.Delivered))
			if got := due(t, s, 9.999, 10); len(got) != 0 {
				t.Errorf("too early: %v", got)
			}
			if got, want := due(t, s, 30, 10), []string{"b", "c", "a"}; !slices.Equal(got, want) {
				t.Errorf("got %v, want %v", got, want)
			}
			if got, want := due(t, s, 30, 2), []string{"b", "c"}; !slices.Equal(got, want) {
				t.Errorf("limited: got %v, want %v", got, want)
			}
		}},
		{"only one of two takes a lease, and only once it is due", func(t *testing.T, s *Outbox) {
			d := post("a")
			create(t, s, at(30), d)
			for _, step := range []struct {
				now  float64
				want bool
			}{{29, false}, {30, true}, {31, false}, {59, false}, {60, true}} {
				got, ok, err := s.Lease(t.Context(), 1, "a", at(step.now), at(step.now+30))
				if err != nil || ok != step.want || got.ID != "a" {
					t.Errorf("at %v: taken %v, want %v (%+v, error %v)", step.now, ok, step.want, got, err)
				}
			}
		}},
		{"a retry waits for its time, counts and keeps its attempt", func(t *testing.T, s *Outbox) {
			d := post("a")
			create(t, s, at(30), d)
			o := outcome(d, 1, outbox.Retrying)
			finish(t, s, o)
			got := get(t, s, d)
			if got.State != outbox.Retrying || got.Tries != 1 || got.Reason != o.Reason || !got.NextAttemptAt.Equal(at(11)) {
				t.Errorf("got %+v", got)
			}
			if !reflect.DeepEqual(got.Attempts, []outbox.Attempt{o.Attempt}) {
				t.Errorf("attempts %+v", got.Attempts)
			}
			if ids := due(t, s, 11, 9); !slices.Equal(ids, []string{"a"}) {
				t.Errorf("due %v", ids)
			}
		}},
		{"the same outcome twice changes nothing the second time", func(t *testing.T, s *Outbox) {
			d := post("a")
			create(t, s, at(30), d)
			finish(t, s, outcome(d, 1, outbox.Retrying), outcome(d, 1, outbox.Retrying))
			finish(t, s, outcome(d, 1, outbox.Retrying))
			if got := get(t, s, d); got.Tries != 1 || len(got.Attempts) != 1 {
				t.Errorf("got %+v", got)
			}
		}},
		{"an outcome for an ended delivery only adds its attempt", func(t *testing.T, s *Outbox) {
			d := post("a")
			create(t, s, at(30), d)
			finish(t, s, outcome(d, 1, outbox.Delivered))
			finish(t, s, outcome(d, 2, outbox.Retrying))
			got := get(t, s, d)
			if got.State != outbox.Delivered || got.Tries != 1 || len(got.Attempts) != 2 || !got.NextAttemptAt.IsZero() {
				t.Errorf("got %+v", got)
			}
			if ids := due(t, s, 1000, 9); len(ids) != 0 {
				t.Errorf("due %v", ids)
			}
		}},
		{"a fault of our own counts nothing and is kept once while it repeats", func(t *testing.T, s *Outbox) {
			d := post("a")
			create(t, s, at(30), d)
			for i := range 3 {
				o := outcome(d, float64(i), outbox.Retrying)
				o.Uncounted = true
				finish(t, s, o)
			}
			got := get(t, s, d)
			if got.Tries != 0 || len(got.Attempts) != 1 || !got.NextAttemptAt.Equal(at(12)) {
				t.Errorf("got %+v", got)
			}
		}},
		{"an outcome for a delivery that is gone is no error", func(t *testing.T, s *Outbox) {
			finish(t, s, outcome(post("x"), 1, outbox.Delivered))
		}},
		{"a lease that runs is renewed or given back, others stay", func(t *testing.T, s *Outbox) {
			create(t, s, at(30), post("a"), post("b"), post("c"))
			finish(t, s, outcome(post("c"), 1, outbox.Retrying))
			refs := []outbox.Ref{{Account: 1, ID: "a"}, {Account: 1, ID: "c"}, {Account: 1, ID: "gone"}}
			if err := s.Renew(t.Context(), refs, at(100)); err != nil {
				t.Fatal(err)
			}
			if err := s.Release(t.Context(), []outbox.Ref{{Account: 1, ID: "b"}, {Account: 1, ID: "c"}}, at(5)); err != nil {
				t.Fatal(err)
			}
			if got := due(t, s, 99, 9); !slices.Equal(got, []string{"b", "c"}) {
				t.Errorf("due at 99: %v", got)
			}
			if err := s.Renew(t.Context(), []outbox.Ref{{Account: 1, ID: "b"}}, at(500)); err != nil {
				t.Fatal(err)
			}
			if got := due(t, s, 99, 9); !slices.Equal(got, []string{"b", "c"}) {
				t.Errorf("a lease that was given back was renewed: %v", got)
			}
		}},
		{"a replay takes the dead, and the delivered only when asked to", func(t *testing.T, s *Outbox) {
			ids := []string{"dead", "delivered", "simulated", "queued"}
			refs := []outbox.Ref{{Account: 1, ID: "gone"}}
			for _, id := range ids {
				create(t, s, at(30), post(id))
				refs = append(refs, outbox.Ref{Account: 1, ID: id})
			}
			for _, state := range []outbox.State{outbox.Dead, outbox.Delivered, outbox.Simulated} {
				finish(t, s, outcome(post(string(state)), 1, state))
			}
			changed, err := s.Replay(t.Context(), refs, at(40), false)
			if err != nil || !slices.Equal(changed, refs[1:2]) {
				t.Fatalf("changed %v, error %v", changed, err)
			}
			got := get(t, s, post("dead"))
			if got.State != outbox.Queued || got.Tries != 0 || len(got.Attempts) != 1 || !got.NextAttemptAt.Equal(at(40)) || got.Reason != "" {
				t.Errorf("got %+v", got)
			}
			if changed, err = s.Replay(t.Context(), refs, at(41), true); err != nil || !slices.Equal(changed, refs[2:4]) {
				t.Fatalf("changed %v, error %v", changed, err)
			}
			if got := due(t, s, 41, 9); len(got) != 4 {
				t.Errorf("due %v", got)
			}
		}},
		{"what ended expires after its retention, what is replayed does not", func(t *testing.T, s *Outbox) {
			create(t, s, at(30), post("dead"), post("delivered"), post("again"))
			finish(t, s, outcome(post("dead"), 1, outbox.Dead), outcome(post("delivered"), 1, outbox.Delivered), outcome(post("again"), 1, outbox.Dead))
			if _, err := s.Replay(t.Context(), []outbox.Ref{{Account: 1, ID: "again"}}, at(2), false); err != nil {
				t.Fatal(err)
			}
			for id, want := range map[string]time.Duration{"dead": -1, "delivered": endedRetention, "again": -1} {
				got, err := s.db.rdb.TTL(t.Context(), keyDelivery(1, id)).Result()
				if err != nil || got > want || want > 0 && got < want-time.Minute {
					t.Errorf("%s: %v, want %v (error %v)", id, got, want, err)
				}
			}
		}},
		{"what is dead expires if a retention says so", func(t *testing.T, s *Outbox) {
			s.db.deadRetention = time.Hour
			create(t, s, at(30), post("dead"))
			finish(t, s, outcome(post("dead"), 1, outbox.Dead))
			got, err := s.db.rdb.TTL(t.Context(), keyDelivery(1, "dead")).Result()
			if err != nil || got > time.Hour || got < 59*time.Minute {
				t.Errorf("%v, error %v", got, err)
			}
		}},
		{"a sweep drops from the lists what has expired", func(t *testing.T, s *Outbox) {
			for i := range 3 {
				d := created(post(fmt.Sprint(i)), float64(i))
				create(t, s, at(30), d)
				finish(t, s, outcome(d, 1, outbox.Delivered))
			}
			if err := s.db.rdb.Del(t.Context(), keyDelivery(1, "0"), keyDelivery(1, "1")).Err(); err != nil {
				t.Fatal(err)
			}
			if err := s.Sweep(t.Context()); err != nil {
				t.Fatal(err)
			}
			counts, err := s.Counts(t.Context())
			left, err2 := s.db.rdb.ZRange(t.Context(), keyOutboxCreated(1), 0, -1).Result()
			if err != nil || err2 != nil || counts[outbox.Delivered] != 1 || !slices.Equal(left, []string{"2"}) {
				t.Errorf("counts %v, created %v, errors %v %v", counts, left, err, err2)
			}
		}},
		{"counts are by state over all accounts", func(t *testing.T, s *Outbox) {
			create(t, s, at(30), post("a"), of(2, post("b")), of(2, post("c")))
			finish(t, s, outcome(of(2, post("c")), 1, outbox.Dead))
			got, err := s.Counts(t.Context())
			want := map[outbox.State]int{outbox.Queued: 2, outbox.Retrying: 0, outbox.Delivered: 0, outbox.Simulated: 0, outbox.Dead: 1}
			if err != nil || !reflect.DeepEqual(got, want) {
				t.Errorf("got %v, error %v", got, err)
			}
		}},
	}
	onEvery(t, func(t *testing.T, open func(*testing.T) *DB) {
		for _, c := range cases {
			t.Run(c.name, func(t *testing.T) { c.test(t, open(t).Outbox()) })
		}
	})
}
