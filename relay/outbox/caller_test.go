package outbox

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/penstock/penstock/relay"
	"github.com/penstock/penstock/relay/db"
	"github.com/penstock/penstock/relay/db/dbtest"
	"github.com/penstock/penstock/relay/relaytest"
)

// dispatchRecorder records the ids of dispatched deliveries.
type dispatchRecorder struct{ ids []string }

func (d *dispatchRecorder) Dispatch(ds []Delivery) {
	for i := range ds {
		d.ids = append(d.ids, ds[i].ID)
	}
}

// newSender returns a sender with a new database and a lease of one minute. Its clock stands
// at second 0.
func newSender(t *testing.T) (Sender, *Store, *dispatchRecorder) {
	t.Helper()
	store, d := NewStore(dbtest.Open(t, db.Options{Now: func() time.Time { return timeAt(0) }})), &dispatchRecorder{}
	return Sender{Store: store, Dispatcher: d, Lease: time.Minute, Now: func() time.Time { return timeAt(0) }}, store, d
}

func callbackOf(url string, err error) func(context.Context, relay.AccountID) (string, error) {
	return func(_ context.Context, acct relay.AccountID) (string, error) {
		if acct != 1 {
			return "", err
		}
		return url, err
	}
}

func TestOnlyNewDeliveriesAreDispatched(t *testing.T) {
	s, store, dispatcher := newSender(t)
	for _, ids := range [][]string{{"a"}, {"b", "a", "c"}, {"c", "b"}, {"d", "d"}, {}} {
		var ds []Delivery
		for _, id := range ids {
			ds = append(ds, newDelivery(id))
		}
		relaytest.NoError(t, s.Send(t.Context(), ds))
	}
	relaytest.Equal(t, "the dispatched deliveries", dispatcher.ids, []string{"a", "b", "c", "d"})
	d := relaytest.Must(store.Get(t.Context(), 1, "c"))(t)
	relaytest.Equal(t, "the end of the lease", d.NextAttemptAt, timeAt(60).UTC())
	relaytest.NoError(t, store.db.Close())
	if err := s.Send(t.Context(), []Delivery{newDelivery("e")}); err == nil || len(dispatcher.ids) != 4 {
		t.Errorf("error %v, %d dispatched; want the error of the store and 4", err, len(dispatcher.ids))
	}
}

func TestAnEventIsSentOnce(t *testing.T) {
	s, store, dispatcher := newSender(t)
	caller := Caller{Sender: s, CallbackURL: callbackOf("https://example.com/cb", nil)}
	e := Event{ID: "claim-j1", Type: "token.claimed", CreatedAt: timeAt(0), About: "j1", Data: map[string]any{"n": 1}}
	for _, acct := range []relay.AccountID{1, 1, 2} { // a new event, a repeated event and an account without a callback
		relaytest.NoError(t, caller.Notify(t.Context(), acct, e))
	}
	relaytest.Equal(t, "the dispatched deliveries", dispatcher.ids, []string{"claim-j1"})
	d := relaytest.Must(store.Get(t.Context(), 1, "claim-j1"))(t)
	const body = `{"created_at":"2026-11-21T12:00:00Z","data":{"n":1},"id":"claim-j1","type":"token.claimed"}`
	relaytest.Equal(t, "kind and message id", []any{d.Kind, d.MessageID}, []any{KindCallback, "j1"})
	relaytest.Equal(t, "the request", []string{d.Request.Method, d.Request.URL, string(d.Request.Body)}, []string{"POST", "https://example.com/cb", body})
}

func TestNotifyReturnsTheErrorOfAnUnsavedEvent(t *testing.T) {
	s, store, dispatcher := newSender(t)
	caller := Caller{Sender: s, CallbackURL: callbackOf("https://example.com/", nil)}
	if err := caller.Notify(t.Context(), 1, Event{ID: "e", Data: make(chan int)}); err == nil {
		t.Error("data that cannot be encoded as JSON was accepted")
	}
	relaytest.NoError(t, store.db.Close())
	if err := caller.Notify(t.Context(), 1, Event{ID: "e"}); err == nil || len(dispatcher.ids) != 0 {
		t.Errorf("error %v, %d dispatched; want the error of the store and 0", err, len(dispatcher.ids))
	}
	down := errors.New("down")
	caller.CallbackURL = callbackOf("", down)
	if err := caller.Notify(t.Context(), 1, Event{ID: "e"}); !errors.Is(err, down) {
		t.Errorf("got error %v, want the error of the callback lookup", err)
	}
}

func TestAPreparedEventIsSentLater(t *testing.T) {
	s, _, dispatcher := newSender(t)
	caller := Caller{Sender: s, CallbackURL: callbackOf("https://example.com/cb", nil)}
	send, err := caller.Prepare(t.Context(), 1, Event{ID: "e1", Type: "job.completed"})
	relaytest.NoError(t, err)
	relaytest.Equal(t, "the number of deliveries dispatched by Prepare", len(dispatcher.ids), 0)
	send()
	relaytest.Equal(t, "the deliveries dispatched by send", dispatcher.ids, []string{"e1"})
	if secondSend, err := caller.Prepare(t.Context(), 1, Event{ID: "e1", Type: "job.completed"}); secondSend != nil || err != nil {
		t.Errorf("second Prepare of an event: error %v, want neither a function nor an error", err)
	}
}
