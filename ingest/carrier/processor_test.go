package carrier

import (
	"context"
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/penstock/penstock/ingest/intake"
	"github.com/penstock/penstock/ingest/intake/intaketest"
	"github.com/penstock/penstock/relay/event"
	"github.com/penstock/penstock/relay/inbound"
	"github.com/penstock/penstock/relay/relaytest"
)

// receiver returns results that the test sets, and stores the messages.
type receiver struct {
	messages []inbound.Message
	results  map[string]inbound.Result // by carrier id; the default is Done
	err      error
}

func (r *receiver) Receive(_ context.Context, msgs []inbound.Message) ([]inbound.Result, error) {
	r.messages = msgs
	results := make([]inbound.Result, len(msgs))
	for i, m := range msgs {
		results[i] = inbound.Result{State: event.Done}
		if result, ok := r.results[m.CarrierID]; ok {
			results[i] = result
		}
	}
	return results, r.err
}

func newItem(id string, seq uint64, e intake.Entry) intake.Item {
	e.Account, e.ReceivedAt = 1, time.Unix(1782903600, 0)
	if e.Source == "" {
		e.Source, e.Path = "json", "/inbound/sms/json"
	}
	return intake.Item{ID: id, Seq: seq, Entry: e}
}

func newPost(id string) intake.Entry {
	return intake.Entry{Body: []byte(`{"id":"` + id + `","from":"1","to":"2","text":"a"}`)}
}

func TestProcessReturnsTheStatusesOfPosts(t *testing.T) {
	r := &receiver{results: map[string]inbound.Result{
		"lost": {State: event.Unrouted, Reason: "no relay for 2"},
		"bad":  {State: event.Quarantined, Reason: "geo relay g1 cannot be performed"},
	}}
	statuses, err := intaketest.Process(t.Context(), NewProcessor(r), newItem("n-1", 1, newPost("good")), newItem("n-2", 2, newPost("lost")), newItem("n-3", 3, intake.Entry{Body: []byte("{")}),
		newItem("n-4", 4, newPost("bad")), newItem("n-5", 5, intake.Entry{Source: "pigeon"}),
		newItem("n-6", 6, intake.Entry{Source: "kannel", Path: "/inbound/sms/kannel/k1", Query: "id=k&from=1&to=2&text=a&coding=9"}))
	relaytest.NoError(t, err)
	base := event.Status{Account: 1, Source: "json"}
	want := []event.Status{base, base, base, base, base}
	want[0].ID, want[0].Seq, want[0].State, want[0].Reason = "n-2", 2, event.Unrouted, "no relay for 2"
	want[1].ID, want[1].Seq, want[1].State, want[1].Reason = "n-3", 3, event.Quarantined, "Invalid JSON."
	want[2].ID, want[2].Seq, want[2].State, want[2].Reason = "n-4", 4, event.Quarantined, "geo relay g1 cannot be performed"
	want[3].ID, want[3].Seq, want[3].State, want[3].Reason, want[3].Source = "n-5", 5, event.Quarantined, `no adapter for the carrier "pigeon"`, "pigeon"
	want[4].ID, want[4].Seq, want[4].State, want[4].Reason, want[4].Source = "n-6", 6, event.Quarantined, "The given data was invalid. The coding must be 0, 1 or 2.", "kannel"
	relaytest.Equal(t, "the statuses", statuses, want)
	if len(r.messages) != 3 {
		t.Fatalf("received messages = %d, want 3", len(r.messages))
	}
	relaytest.Equal(t, "the id", r.messages[0].ID, "n-1")
	relaytest.Equal(t, "the account", r.messages[0].Account, 1)
	relaytest.Equal(t, "the carrier", r.messages[0].Carrier, "json")
	relaytest.Equal(t, "the time of receipt", r.messages[0].ReceivedAt.Unix(), 1782903600)
}

func TestTheOutcomeOfADuplicateIsStored(t *testing.T) {
	r := &receiver{results: map[string]inbound.Result{"repeated": {State: event.Done, Outcome: "duplicate of n-1"}}}
	got, err := intaketest.Process(t.Context(), NewProcessor(r), newItem("n-1", 1, newPost("first")), newItem("n-2", 2, newPost("repeated")))
	want := []event.Status{{ID: "n-2", Seq: 2, State: event.Done, Outcome: "duplicate of n-1", Account: 1, Source: "json"}}
	relaytest.NoError(t, err)
	relaytest.Equal(t, "the statuses", got, want)
}

func TestStatusesOfAPostAreMerged(t *testing.T) {
	done, unrouted := event.Status{ID: "n-1", State: event.Done, Outcome: "duplicate of n-0"}, event.Status{ID: "n-1", State: event.Unrouted, Reason: "no relay for 2"}
	quarantined := event.Status{ID: "n-1", State: event.Quarantined, Reason: "bad"}
	for _, tc := range []struct{ a, b, want event.Status }{
		{event.Status{}, unrouted, unrouted},
		{done, done, event.Status{ID: "n-1", State: event.Done, Outcome: "duplicate of n-0; duplicate of n-0"}},
		{done, unrouted, event.Status{ID: "n-1", State: event.Unrouted, Reason: "no relay for 2", Outcome: "duplicate of n-0"}},
		{unrouted, done, event.Status{ID: "n-1", State: event.Unrouted, Reason: "no relay for 2", Outcome: "duplicate of n-0"}},
		{unrouted, quarantined, event.Status{ID: "n-1", State: event.Quarantined, Reason: "no relay for 2; bad"}},
		{quarantined, unrouted, event.Status{ID: "n-1", State: event.Quarantined, Reason: "bad; no relay for 2"}},
	} {
		t.Run(fmt.Sprintf("%q and %q", tc.a.State, tc.b.State), func(t *testing.T) {
			relaytest.Equal(t, "the merged status", merge(tc.a, tc.b), tc.want)
		})
	}
}

func TestProcessReturnsTheErrorOfTheReceiver(t *testing.T) {
	errDown := errors.New("down")
	if _, err := intaketest.Process(t.Context(), NewProcessor(&receiver{err: errDown}), newItem("n-1", 1, newPost("a"))); !errors.Is(err, errDown) {
		t.Errorf("error = %v, want %v", err, errDown)
	}
}
