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

// receiver answers with a fixed result per message and keeps the messages.
type receiver struct {
	got     []inbound.Message
	results map[string]inbound.Result // by carrier id; Done when absent
	err     error
}

func (r *receiver) Receive(_ context.Context, msgs []inbound.Message) ([]inbound.Result, error) {
	r.got = msgs
	out := make([]inbound.Result, len(msgs))
	for i, m := range msgs {
		out[i] = inbound.Result{State: event.Done}
		if special, ok := r.results[m.CarrierID]; ok {
			out[i] = special
		}
	}
	return out, r.err
}

func item(id string, seq uint64, e intake.Entry) intake.Item {
	e.Account, e.ReceivedAt = 1, time.Unix(1782903600, 0)
	if e.Source == "" {
		e.Source, e.Path = "json", "/inbound/sms/json"
	}
	return intake.Item{ID: id, Seq: seq, Entry: e}
}

func posted(id string) intake.Entry {
	return intake.Entry{Body: []byte(`{"id":"` + id + `","from":"1","to":"2","text":"a"}`)}
}

func TestProcessReportsQuarantinedPosts(t *testing.T) {
	r := &receiver{results: map[string]inbound.Result{
		"lost": {State: event.Unrouted, Reason: "no relay for 2"},
		"bad":  {State: event.Quarantined, Reason: "geo relay g1 cannot be performed"},
	}}
	statuses, err := intaketest.Process(t.Context(), NewProcessor(r), item("n-1", 1, posted("good")), item("n-2", 2, posted("lost")), item("n-3", 3, intake.Entry{Body: []byte("{")}),
		item("n-4", 4, posted("bad")), item("n-5", 5, intake.Entry{Source: "pigeon"}),
		item("n-6", 6, intake.Entry{Source: "kannel", Path: "/inbound/sms/kannel/k1", Query: "id=k&from=1&to=2&text=a&coding=9"}))
	relaytest.NoError(t, err)
	base := event.Status{Account: 1, Source: "json"}
	want := []event.Status{base, base, base, base, base}
	want[0].ID, want[0].Seq, want[0].State, want[0].Reason = "n-2", 2, event.Unrouted, "no relay for 2"
	want[1].ID, want[1].Seq, want[1].State, want[1].Reason = "n-3", 3, event.Quarantined, "Invalid JSON."
	want[2].ID, want[2].Seq, want[2].State, want[2].Reason = "n-4", 4, event.Quarantined, "geo relay g1 cannot be performed"
	want[3].ID, want[3].Seq, want[3].State, want[3].Reason, want[3].Source = "n-5", 5, event.Quarantined, `no adapter for the carrier "pigeon"`, "pigeon"
	want[4].ID, want[4].Seq, want[4].State, want[4].Reason, want[4].Source = "n-6", 6, event.Quarantined, "The given data was invalid. The coding must be 0, 1 or 2.", "kannel"
	relaytest.Equal(t, "the statuses", statuses, want)
	if len(r.got) != 3 {
		t.Fatalf("%d messages received, want 3", len(r.got))
	}
	relaytest.Equal(t, "the id", r.got[0].ID, "n-1")
	relaytest.Equal(t, "the account", r.got[0].Account, 1)
	relaytest.Equal(t, "the carrier", r.got[0].Carrier, "json")
	relaytest.Equal(t, "the time of receipt", r.got[0].ReceivedAt.Unix(), 1782903600)
}

func TestProcessShowsWhatAMessageRepeats(t *testing.T) {
	r := &receiver{results: map[string]inbound.Result{"again": {State: event.Done, Outcome: "duplicate of n-1"}}}
	got, err := intaketest.Process(t.Context(), NewProcessor(r), item("n-1", 1, posted("first")), item("n-2", 2, posted("again")))
	want := []event.Status{{ID: "n-2", Seq: 2, State: event.Done, Outcome: "duplicate of n-1", Account: 1, Source: "json"}}
	relaytest.NoError(t, err)
	relaytest.Equal(t, "the statuses", got, want)
}

func TestTheStatusesOfAPostAreMerged(t *testing.T) {
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

func TestProcessReturnsThatABackEndIsDown(t *testing.T) {
	down := errors.New("down")
	if _, err := intaketest.Process(t.Context(), NewProcessor(&receiver{err: down}), item("n-1", 1, posted("a"))); !errors.Is(err, down) {
		t.Errorf("got %v", err)
	}
}
