package redisstore

import (
	"reflect"
	"slices"
	"testing"
	"time"

	"github.com/penstock/penstock/relay/outbox"
)

// to is a delivery to an endpoint.
func to(endpoint, id string, ordered bool) outbox.Delivery {
	d := post(id)
	d.Endpoint, d.Pace.Ordered = endpoint, ordered
	return d
}

// parked is the outcome of a delivery that a breaker holds without an attempt.
func parked(d outbox.Delivery, until float64) outbox.Outcome {
	return outbox.Outcome{
		ID: d.ID, Account: d.Account, State: outbox.Queued, Reason: "it fails", Uncounted: true,
		Endpoint: d.Lane(), HeldUntil: at(until),
	}
}

func take(t *testing.T, s *Outbox, endpoint string, n int, before time.Time) []string {
	t.Helper()
	ds, err := s.Take(t.Context(), outbox.Line{Account: 1, Endpoint: endpoint}, n, before, at(500))
	if err != nil {
		t.Fatal(err)
	}
	ids := []string{}
	for _, d := range ds {
		ids = append(ids, d.ID)
		if d.Waits != "" || !d.NextAttemptAt.Equal(at(500)) || d.Request == nil {
			t.Errorf("taken without a lease: %+v", d)
		}
	}
	return ids
}

func TestWhatWaitsForABreaker(t *testing.T) {
	cases := []struct {
		name string
		test func(t *testing.T, s *Outbox)
	}{
		{"it is not due, says so, and keeps the end of its first wait", func(t *testing.T, s *Outbox) {
			d := to("e", "a", false)
			create(t, s, at(30), d)
			finish(t, s, parked(d, 100))
			finish(t, s, parked(d, 200))
			got := get(t, s, d)
			if got.Waits != outbox.WaitsForBreaker || !got.HeldUntil.Equal(at(100)) || !got.NextAttemptAt.IsZero() || got.Tries != 0 || len(got.Attempts) != 0 || got.Reason != "it fails" {
				t.Errorf("got %+v", got)
			}
			if ids := due(t, s, 1e6, 9); len(ids) != 0 {
				t.Errorf("due %v", ids)
			}
			if _, ok, err := s.Lease(t.Context(), 1, "a", at(1e6), at(2e6)); ok || err != nil {
				t.Errorf("leased %v, error %v", ok, err)
			}
		}},
		{"lines are counted, and taken from the shortest wait on", func(t *testing.T, s *Outbox) {
			a, b, c := to("e", "a", false), to("e", "b", false), to("f", "c", false)
			create(t, s, at(30), a, b, c)
			finish(t, s, parked(a, 100), parked(b, 50), parked(c, 70))
			lines, err := s.Held(t.Context())
			slices.SortFunc(lines, func(x, y outbox.Line) int { return x.First.Compare(y.First) })
			want := []outbox.Line{{Account: 1, Endpoint: "e", Count: 2, First: at(50)}, {Account: 1, Endpoint: "f", Count: 1, First: at(70)}}
			if err != nil || !reflect.DeepEqual(lines, want) {
				t.Fatalf("got %+v, error %v", lines, err)
			}
			if got := take(t, s, "e", 9, at(49)); len(got) != 0 {
				t.Errorf("too early: %v", got)
			}
			if got := take(t, s, "e", 1, time.Time{}); !slices.Equal(got, []string{"b"}) {
				t.Errorf("the first: %v", got)
			}
			if got := take(t, s, "e", 9, at(100)); !slices.Equal(got, []string{"a"}) {
				t.Errorf("the rest: %v", got)
			}
			if lines, err = s.Held(t.Context()); err != nil || len(lines) != 1 {
				t.Errorf("left %+v, error %v", lines, err)
			}
			if ids := due(t, s, 500, 9); !slices.Equal(ids, []string{"a", "b"}) {
				t.Errorf("due after their lease: %v", ids)
			}
		}},
		{"an attempt that counts ends the wait, but not the time breakers have", func(t *testing.T, s *Outbox) {
			d := to("e", "a", false)
			create(t, s, at(30), d)
			finish(t, s, parked(d, 100))
			o := outcome(d, 1, outbox.Retrying)
			o.Endpoint = "e"
			finish(t, s, o)
			if got := get(t, s, d); got.Waits != "" || !got.HeldUntil.Equal(at(100)) || got.Tries != 1 {
				t.Errorf("got %+v", got)
			}
			if got := take(t, s, "e", 9, time.Time{}); len(got) != 0 {
				t.Errorf("still in the line: %v", got)
			}
		}},
		{"a probe that fails is kept, counts nothing and waits again", func(t *testing.T, s *Outbox) {
			d := to("e", "a", false)
			create(t, s, at(30), d)
			finish(t, s, parked(d, 100))
			take(t, s, "e", 1, time.Time{})
			o := outcome(d, 1, outbox.Retrying)
			o.Uncounted, o.NextAttemptAt, o.HeldUntil, o.Endpoint = true, time.Time{}, at(300), "e"
			finish(t, s, o)
			if got := get(t, s, d); got.Waits != outbox.WaitsForBreaker || !got.HeldUntil.Equal(at(100)) || got.Tries != 0 || len(got.Attempts) != 1 || got.State != outbox.Retrying {
				t.Errorf("got %+v", got)
			}
		}},
		{"lists tell and find it", func(t *testing.T, s *Outbox) {
			a, b := to("e", "a", false), to("e", "b", false)
			create(t, s, at(30), a, b)
			finish(t, s, parked(a, 100))
			page, _, err := s.List(t.Context(), outbox.Filter{Waits: outbox.WaitsForBreaker})
			if err != nil || len(page) != 1 || page[0].ID != "a" || page[0].Waits != outbox.WaitsForBreaker {
				t.Errorf("got %+v, error %v", page, err)
			}
		}},
	}
	onEvery(t, func(t *testing.T, open func(*testing.T) *DB) {
		for _, c := range cases {
			t.Run(c.name, func(t *testing.T) { c.test(t, open(t).Outbox()) })
		}
	})
}

func TestOrderedEndpoints(t *testing.T) {
	onEvery(t, func(t *testing.T, open func(*testing.T) *DB) {
		s := open(t).Outbox()
		first, second, third, other := to("e", "z", true), to("e", "y", true), to("e", "x", true), to("f", "o", true)
		ds := []outbox.Delivery{first, second, third, other}
		if existing, err := s.Create(t.Context(), ds, at(30)); err != nil || len(existing) != 0 {
			t.Fatalf("existing %v, error %v", existing, err)
		}
		for i, want := range []outbox.Wait{"", outbox.WaitsForTurn, outbox.WaitsForTurn, ""} {
			if ds[i].Waits != want || get(t, s, ds[i]).Waits != want || ds[i].NextAttemptAt.IsZero() != (want != "") {
				t.Errorf("%s waits for %q, want %q", ds[i].ID, ds[i].Waits, want)
			}
		}
		turns := func(sec float64, d outbox.Delivery, state outbox.State) []outbox.Ref {
			t.Helper()
			refs, err := s.Finish(t.Context(), []outbox.Outcome{outcome(d, sec, state)})
			if err != nil {
				t.Fatal(err)
			}
			return refs
		}
		if got := turns(1, first, outbox.Retrying); len(got) != 0 {
			t.Errorf("after a retry it is the turn of %v", got)
		}
		if got := turns(12, first, outbox.Dead); !slices.Equal(got, []outbox.Ref{{Account: 1, ID: "y"}}) {
			t.Errorf("after the first one's end it is the turn of %v", got)
		}
		if got := due(t, s, 12, 9); !slices.Equal(got, []string{"y"}) {
			t.Errorf("due %v", got)
		}
		if changed, err := s.Replay(t.Context(), []outbox.Ref{{Account: 1, ID: "z"}}, at(13), false); err != nil || len(changed) != 1 {
			t.Fatalf("changed %v, error %v", changed, err)
		}
		if got := get(t, s, first); got.Waits != outbox.WaitsForTurn {
			t.Errorf("what is replayed goes to the end: %+v", got)
		}
		for i, step := range []struct {
			d    outbox.Delivery
			next []outbox.Ref
		}{{second, []outbox.Ref{{Account: 1, ID: "x"}}}, {third, []outbox.Ref{{Account: 1, ID: "z"}}}, {first, nil}} {
			if got := turns(20+float64(i), step.d, outbox.Delivered); !slices.Equal(got, step.next) {
				t.Errorf("after %s it is the turn of %v, want %v", step.d.ID, got, step.next)
			}
		}
		if changed, err := s.Replay(t.Context(), []outbox.Ref{{Account: 1, ID: "z"}}, at(30), true); err != nil || len(changed) != 1 {
			t.Fatalf("changed %v, error %v", changed, err)
		}
		if got := due(t, s, 30, 9); !slices.Equal(got, []string{"o", "z"}) && !slices.Equal(got, []string{"z", "o"}) {
			t.Errorf("due %v", got)
		}
	})
}

func TestBreakersAreKeptForEveryGateway(t *testing.T) {
	onEvery(t, func(t *testing.T, open func(*testing.T) *DB) {
		s := open(t).Breakers()
		later := outbox.Breaker{Endpoint: "f", Account: 2, OpenedAt: at(9)}
		b := outbox.Breaker{Endpoint: "e", Account: 1, Relay: "v1", Target: "http://h/", Reason: "answered 500", OpenedAt: at(1), ProbeAt: at(6)}
		again := b
		again.Probes, again.ProbeAt = 1, at(16)
		for _, step := range []outbox.Breaker{later, b, again} {
			if err := s.Open(t.Context(), step); err != nil {
				t.Fatal(err)
			}
		}
		if got, err := s.List(t.Context()); err != nil || !reflect.DeepEqual(got, []outbox.Breaker{again, later}) {
			t.Errorf("got %+v, error %v", got, err)
		}
		if err := s.Close(t.Context(), "e"); err != nil {
			t.Fatal(err)
		}
		if got, err := s.List(t.Context()); err != nil || !reflect.DeepEqual(got, []outbox.Breaker{later}) {
			t.Errorf("got %+v, error %v", got, err)
		}
	})
}
