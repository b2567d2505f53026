package inbound

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/penstock/penstock/decoders"
	"github.com/penstock/penstock/relay"
	"github.com/penstock/penstock/relay/account"
	"github.com/penstock/penstock/relay/event"
	"github.com/penstock/penstock/relay/outbox"
	"github.com/penstock/penstock/relay/relaytest"
)

// fakePosts returns posts by the ids of their events.
type fakePosts struct{ posts map[string]Post }

func (p *fakePosts) Post(_ context.Context, id string) (Post, error) {
	post, ok := p.posts[id]
	if !ok {
		return post, relay.Errorf(relay.KindNotFound, "event %s", id)
	}
	return post, nil
}

// add adds an event and the result of Post.Messages: its messages, a description of other
// content, or an error.
func (p *fakePosts) add(e event.Event, content string, err error, messages ...Message) {
	e.Source, e.ReceivedAt = "json", now()
	p.posts[e.ID] = Post{Event: e, TokenAccount: 1, Messages: func() ([]Message, string, error) { return messages, content, err }}
}

func tracer(t *testing.T, w *world) (*Tracer, *fakePosts) {
	t.Helper()
	p := &fakePosts{posts: map[string]Post{}}
	accounts := account.NewStore(w.store.db)
	relaytest.Must(accounts.PutAccount(t.Context(), account.Account{ID: 1, Name: "acme"}))(t)
	return &Tracer{Posts: p, Service: w.service(), Deliveries: w.deliveries, Accounts: accounts}, p
}

// traceLines returns a trace as lines: second|step|message|text, then the ids of deliveries.
func traceLines(t *testing.T, tr *Tracer, id string) string {
	t.Helper()
	got, err := tr.Trace(t.Context(), id)
	relaytest.NoError(t, err)
	var lines []string
	for _, s := range got.Steps {
		second := "-"
		if !s.At.IsZero() {
			second = s.At.Format("05")
		}
		lines = append(lines, strings.Join([]string{second, s.Name, s.Message, s.Text}, "|"))
	}
	for _, d := range got.Deliveries {
		lines = append(lines, d.ID)
	}
	return strings.Join(lines, "\n")
}

func TestATraceHasTheStepsOfAMessage(t *testing.T) {
	w := newWorld(t, geo("g1", "4478", BlackHole))
	tr, p := tracer(t, w)
	m := numbered("s1", "447860000001")
	receivedAt := now()
	w.clock = receivedAt.Add(time.Minute)
	relaytest.Must(w.deliveries.Create(t.Context(), []outbox.Delivery{{
		ID: "d2", Account: 1, MessageID: "s1", Relay: "g1", CreatedAt: receivedAt.Add(2 * time.Second), Request: &outbox.Request{URL: "https://h/?token=secret"},
	}, {
		ID: "d1", Account: 1, MessageID: "s1", Relay: "g1", CreatedAt: receivedAt.Add(time.Second), Mail: &outbox.Mail{To: "a@example.com"},
	}, {
		ID: "d3", Account: 1, MessageID: "s1", Relay: "g1", CreatedAt: receivedAt.Add(5 * time.Second), Request: &outbox.Request{URL: "https://gone/"},
	}}, receivedAt.Add(time.Minute)))(t)
	retrying := outbox.Outcome{ID: "d2", Account: 1, State: outbox.Retrying, Reason: "answered 502 Bad Gateway", NextAttemptAt: receivedAt.Add(time.Minute)}
	attempt1, attempt2 := retrying, retrying
	attempt1.Attempt = outbox.Attempt{At: receivedAt.Add(3 * time.Second), Duration: 1500 * time.Microsecond, Status: 502}
	attempt2.Attempt = outbox.Attempt{At: receivedAt.Add(4 * time.Second), Duration: time.Second, Error: "dial tcp 10.0.0.1:443: i/o timeout", Reason: "no answer in time"}
	dead := outbox.Outcome{ID: "d3", Account: 1, State: outbox.Dead, Reason: "answered 404 Not Found", Attempt: outbox.Attempt{At: receivedAt.Add(6 * time.Second), Duration: 20 * time.Millisecond, Status: 404}}
	delivered := outbox.Outcome{ID: "d1", Account: 1, State: outbox.Delivered, Attempt: outbox.Attempt{At: receivedAt.Add(2 * time.Second), Duration: 40 * time.Millisecond, Status: 250}}
	relaytest.Must(w.deliveries.Finish(t.Context(), []outbox.Outcome{attempt1, attempt2, delivered, dead}))(t)
	p.add(event.Event{ID: "s1", Kind: event.SMS, State: event.Done}, "", nil, m)
	want := `03|received||Received from source json for account acme and written to the journal.
-|read|s1|The message is from 447700900123 to 447860000001, encoding GSM 7-bit.
04|routed|s1|The relay g1 creates a delivery to a@example.com.
05|attempt|s1|Attempt 1 to deliver to a@example.com ended after 40 ms: answered 250.
-|state|s1|The delivery to a@example.com succeeded.
05|routed|s1|The relay g1 creates a delivery to https://h/?token=***.
06|attempt|s1|Attempt 1 to deliver to https://h/?token=*** ended after 2 ms: answered 502.
07|attempt|s1|Attempt 2 to deliver to https://h/?token=*** ended after 1000 ms: no answer in time.
03|state|s1|The delivery to https://h/?token=*** is attempted again at this time, because the last attempt failed: answered 502 Bad Gateway.
08|routed|s1|The relay g1 creates a delivery to https://gone/.
09|attempt|s1|Attempt 1 to deliver to https://gone/ ended after 20 ms: answered 404.
-|state|s1|The delivery to https://gone/ failed and is not attempted again by itself: answered 404 Not Found.
d1
d2
d3`
	if got := traceLines(t, tr, "s1"); got != want {
		t.Errorf("trace:\n%s\nwant:\n%s", got, want)
	}
}

func TestATraceExplainsMissingDeliveries(t *testing.T) {
	w := newWorld(t, geo("g1", "4478", BlackHole))
	tr, p := tracer(t, w)
	original, duplicate, part := numbered("s1", "447860000001"), numbered("s2", "447860000001"), piece("s3", "447860000001", 1, 2, "a")
	original.CarrierID, duplicate.CarrierID, part.CarrierID = "c1", "c1", ""
	receive(t, tr.Service, original)
	p.add(event.Event{ID: "s1", Kind: event.SMS, State: event.Done}, "", nil, original)
	p.add(event.Event{ID: "s2", Kind: event.SMS, State: event.Done}, "", nil, duplicate)
	p.add(event.Event{ID: "s3", Kind: event.SMS, State: event.Done}, "", nil, part)
	p.add(event.Event{ID: "s4", Kind: event.SMS, State: event.Pending}, "", nil, original)
	p.add(event.Event{ID: "s5", Kind: event.SMS, State: event.Quarantined, Reason: "the From field is required."}, "", errors.New("no number"))
	p.add(event.Event{ID: "s6", Kind: event.SMS, State: event.Done}, "a delivery receipt: SM1 is sent", nil)
	p.add(event.Event{ID: "s7", Kind: event.SMS, State: event.Unrouted, Reason: "the account has no relay for 4490"}, "", nil)
	p.add(event.Event{ID: "r1", Kind: event.Receipt, State: event.Done, Notes: decoders.Notes{"octets were ignored"}}, "", nil)
	p.add(event.Event{ID: "u1", Kind: event.Uplink, State: event.Done}, "", nil, original)
	for id, want := range map[string]string{
		"s1": "routed|s1|No deliveries were created. With the current relays: the geographic relay g1 discards the message.",
		"s2": "duplicate|s2|The carrier sent the message again. It was received before as s1, so it is dropped.",
		"s3": "joined|s3|This is part 1 of 2 of a message. It waits for the other parts, or they did not arrive in time.",
		"s4": "waits||The event waits to be processed.",
		"s5": "quarantined||The event is quarantined: the From field is required. Correct the cause, then replay the event.",
		"s6": "read||The request is a delivery receipt: SM1 is sent.",
		"s7": "unrouted||No relay takes the message: the account has no relay for 4490. Add or change a relay, then replay the event.",
		"r1": "note||octets were ignored",
		"u1": "received||Received from source json for account acme and written to the journal.",
	} {
		if got := traceLines(t, tr, id); !strings.HasSuffix(got, want) {
			t.Errorf("trace of %s = %s, want %s", id, got, want)
		}
	}
}

func TestAnIncompleteTraceIsAnError(t *testing.T) {
	w := newWorld(t)
	tr, p := tracer(t, w)
	p.add(event.Event{ID: "s1", Kind: event.SMS, State: event.Done}, "", nil, numbered("s1", "447860000001"))
	p.add(event.Event{ID: "s2", Kind: event.SMS, State: event.Done}, "", relay.Errorf(relay.KindUnavailable, "down"))
	w.breakTable("delivery")
	for id, want := range map[string]string{"s1": "deliveries of message s1: ", "s2": "down", "s3": "event s3"} {
		if _, err := tr.Trace(t.Context(), id); !strings.HasPrefix(fmt.Sprint(err), want) {
			t.Errorf("error of %s = %v, want %s", id, err, want)
		}
	}
	if _, err := tr.Trace(t.Context(), "s3"); relay.KindOf(err) != relay.KindNotFound {
		t.Errorf("error of a missing event = %v, want not found", err)
	}
}
