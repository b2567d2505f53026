package outbox

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/penstock/penstock/relay/account"
	"github.com/penstock/penstock/relay/relaytest"
)

// creations is a Store that only creates, and a Dispatcher.
type creations struct {
	Store
	made       []Delivery
	until      time.Time
	dispatched int
	err        error
}

func (c *creations) Create(_ context.Context, ds []Delivery, until time.Time) ([]int, error) {
	if c.err != nil {
		return nil, c.err
	}
	for _, d := range c.made {
		if d.ID == ds[0].ID {
			return []int{0}, nil
		}
	}
	c.made, c.until = append(c.made, ds...), until
	return nil, nil
}

func (c *creations) Dispatch(ds []Delivery) { c.dispatched += len(ds) }

func TestAnEventIsSentOnce(t *testing.T) {
	at := time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)
	s := &creations{}
	caller := Caller{
		CallbackURL: func(_ context.Context, acct account.ID) (string, error) {
			return map[account.ID]string{1: "https://example.com/cb"}[acct], nil
		},
		Store: s, Dispatcher: s, Lease: time.Minute, Now: func() time.Time { return at },
	}
	e := Event{ID: "claim-j1", Type: "token.claimed", CreatedAt: at, About: "j1", Data: map[string]any{"n": 1}}
	for _, acct := range []account.ID{1, 1, 2} { // new, existing, without a callback
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
		CallbackURL: func(context.Context, account.ID) (string, error) { return "https://example.com/", nil },
		Store:       s, Dispatcher: s, Now: time.Now,
	}
	if err := caller.Notify(t.Context(), 1, Event{ID: "e"}); !errors.Is(err, down) || s.dispatched != 0 {
		t.Error(err)
	}
	if err := caller.Notify(t.Context(), 1, Event{ID: "e", Data: make(chan int)}); err == nil {
		t.Error("data that is no JSON")
	}
	caller.CallbackURL = func(context.Context, account.ID) (string, error) { return "", down }
	if err := caller.Notify(t.Context(), 1, Event{ID: "e"}); !errors.Is(err, down) {
		t.Error(err)
	}
}

func TestAnEventIsPreparedAndSentLater(t *testing.T) {
	s := &creations{}
	caller := Caller{
		CallbackURL: func(context.Context, account.ID) (string, error) { return "https://example.com/cb", nil },
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
