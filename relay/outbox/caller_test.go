package outbox

import (
	"context"
	"errors"
	"slices"
	"testing"
	"time"

	"github.com/penstock/penstock/relay"
	"github.com/penstock/penstock/relay/relaytest"
)

// creations is a Creator and a Dispatcher.
type creations struct {
	made       []Delivery
	until      time.Time
	dispatched int
	err        error
}

func (c *creations) Create(_ context.Context, ds []Delivery, until time.Time) ([]int, error) {
	if c.err != nil {
		return nil, c.err
	}
	c.until = until
	var existing []int
	for i, d := range ds {
		if slices.ContainsFunc(c.made, func(m Delivery) bool { return m.ID == d.ID }) {
			existing = append(existing, i)
		} else {
			c.made = append(c.made, d)
		}
	}
	return existing, nil
}

func (c *creations) Dispatch(ds []Delivery) { c.dispatched += len(ds) }

func TestOnlyNewDeliveriesAreDispatched(t *testing.T) {
	s, until := &creations{}, time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)
	for _, ids := range [][]string{{"a"}, {"b", "a", "c"}, {"c", "b"}} {
		var ds []Delivery
		for _, id := range ids {
			ds = append(ds, Delivery{ID: id})
		}
		relaytest.NoError(t, Send(t.Context(), s, s, ds, until))
	}
	relaytest.Equal(t, "the created and dispatched deliveries", []int{len(s.made), s.dispatched}, []int{3, 3})
	relaytest.Equal(t, "the end of the lease", s.until, until)
	s.err = errors.New("down")
	if err := Send(t.Context(), s, s, []Delivery{{ID: "d"}}, until); !errors.Is(err, s.err) || s.dispatched != 3 {
		t.Errorf("error %v, %d dispatched; want the store's error and 3", err, s.dispatched)
	}
}

func TestAnEventIsSentOnce(t *testing.T) {
	at := time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)
	s := &creations{}
	caller := Caller{
		CallbackURL: func(_ context.Context, acct relay.AccountID) (string, error) {
			return map[relay.AccountID]string{1: "https://example.com/cb"}[acct], nil
		},
		Store: s, Dispatcher: s, Lease: time.Minute, Now: func() time.Time { return at },
	}
	e := Event{ID: "claim-j1", Type: "token.claimed", CreatedAt: at, About: "j1", Data: map[string]any{"n": 1}}
	for _, acct := range []relay.AccountID{1, 1, 2} { // new, existing, without a callback
		relaytest.NoError(t, caller.Notify(t.Context(), acct, e))
	}
	relaytest.Equal(t, "the created and dispatched deliveries", []int{len(s.made), s.dispatched}, []int{1, 1})
	relaytest.Equal(t, "the end of the lease", s.until, at.Add(time.Minute))
	d := s.made[0]
	const body = `{"created_at":"2026-03-01T12:00:00Z","data":{"n":1},"id":"claim-j1","type":"token.claimed"}`
	relaytest.Equal(t, "id, kind, object and account", []any{d.ID, d.Kind, d.MessageID, int(d.Account)}, []any{"claim-j1", KindCallback, "j1", 1})
	relaytest.Equal(t, "the request", []string{d.Request.Method, d.Request.URL, string(d.Request.Body)}, []string{"POST", "https://example.com/cb", body})
}

func TestAnEventThatIsNotSavedIsAnError(t *testing.T) {
	down := errors.New("redis is down")
	s := &creations{err: down}
	caller := Caller{
		CallbackURL: func(context.Context, relay.AccountID) (string, error) { return "https://example.com/", nil },
		Store:       s, Dispatcher: s, Now: time.Now,
	}
	if err := caller.Notify(t.Context(), 1, Event{ID: "e"}); !errors.Is(err, down) || s.dispatched != 0 {
		t.Error(err)
	}
	if err := caller.Notify(t.Context(), 1, Event{ID: "e", Data: make(chan int)}); err == nil {
		t.Error("data that is no JSON")
	}
	caller.CallbackURL = func(context.Context, relay.AccountID) (string, error) { return "", down }
	if err := caller.Notify(t.Context(), 1, Event{ID: "e"}); !errors.Is(err, down) {
		t.Error(err)
	}
}

func TestAnEventIsPreparedAndSentLater(t *testing.T) {
	s := &creations{}
	caller := Caller{
		CallbackURL: func(context.Context, relay.AccountID) (string, error) { return "https://example.com/cb", nil },
		Store:       s, Dispatcher: s, Lease: time.Minute, Now: time.Now,
	}
	send, err := caller.Prepare(t.Context(), 1, Event{ID: "e1", Type: "job.completed"})
	relaytest.NoError(t, err)
	relaytest.Equal(t, "the created and dispatched deliveries", []int{len(s.made), s.dispatched}, []int{1, 0})
	if send(); s.dispatched != 1 {
		t.Errorf("dispatched %d", s.dispatched)
	}
	if again, err := caller.Prepare(t.Context(), 1, Event{ID: "e1", Type: "job.completed"}); again != nil || err != nil {
		t.Errorf("told twice: %v", err)
	}
}
