package inbound

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/penstock/penstock/relay"
	"github.com/penstock/penstock/relay/event"
	"github.com/penstock/penstock/relay/outbox"
	"github.com/penstock/penstock/relay/relaytest"
)

// world is everything around a Service, in memory.
type world struct {
	relays      []Relay
	version     int64
	lookups     int
	holders     map[string]string
	saved       map[string]outbox.Delivery
	leases      map[string]time.Time
	sent        []string // ids, as dispatched
	kept        []InboxMessage
	heap        *heap
	quarantined []string
	down        string // the port that fails
	duringIt    func() // called while candidates are looked up
}

func newWorld(relays ...Relay) *world {
	w := &world{
		relays: relays, version: 1, holders: make(map[string]string),
		saved: make(map[string]outbox.Delivery), leases: make(map[string]time.Time),
	}
	w.heap = &heap{w: w, parts: make(map[string][]Message), parked: make(map[string]ReassembledMessage)}
	return w
}

var errDown = errors.New("down")

func (w *world) fails(port string) error {
	if w.down == port {
		return errDown
	}
	return nil
}

func (w *world) Version(context.Context) (int64, error) { return w.version, w.fails("version") }

func (w *world) Candidates(_ context.Context, numbers []string) ([][]Relay, error) {
	w.lookups++
	out := make([][]Relay, len(numbers))
	for i, n := range numbers {
		for _, r := range w.relays {
			if r.Number == n || r.Kind == Geographic && strings.HasPrefix(n, r.Number) {
				out[i] = append(out[i], r)
			}
		}
	}
	if w.duringIt != nil {
		w.duringIt()
	}
	return out, w.fails("candidates")
}

func (w *world) Claim(_ context.Context, claims []Claim, ttl time.Duration) ([]string, error) {
	if err := w.fails("claims"); err != nil {
		return nil, err
	}
	if ttl != 7*24*time.Hour {
		return nil, errors.New("want seven days")
	}
	var out []string
	for _, c := range claims {
		if _, taken := w.holders[c.Key]; !taken {
			w.holders[c.Key] = c.Holder
		}
		out = append(out, w.holders[c.Key])
	}
	return out, nil
}

func (w *world) Holder(_ context.Context, key string) (string, error) {
	return w.holders[key], w.fails("holder")
}

func (w *world) Create(_ context.Context, ds []outbox.Delivery, lease time.Time) (created []outbox.Delivery, err error) {
	if err := w.fails("deliveries"); err != nil {
		return nil, err
	}
	for _, d := range ds {
		if _, exists := w.saved[d.ID]; !exists {
			w.saved[d.ID], w.leases[d.ID] = d, lease
			created = append(created, d)
		}
	}
	return created, nil
}

// messages returns the ids of the messages of the dispatched deliveries.
func (w *world) messages() (ids []string) {
	for _, id := range w.sent {
		ids = append(ids, w.saved[id].MessageID)
	}
	return ids
}

func (w *world) Keep(_ context.Context, all []InboxMessage) error {
	w.kept = append(w.kept, all...)
	return w.fails("inbox")
}

func (w *world) Read(context.Context, relay.AccountID, string, int, int) ([]InboxMessage, int, error) {
	return w.kept, len(w.kept), w.fails("inbox")
}

func (w *world) Acknowledge(context.Context, relay.AccountID, string, string, time.Duration) error {
	return w.fails("inbox")
}

func (w *world) Dispatch(ds []outbox.Delivery) {
	for _, d := range ds {
		w.sent = append(w.sent, d.ID)
	}
}

func now() time.Time { return time.Date(2026, 7, 1, 11, 0, 3, 0, time.UTC) }

func (w *world) service(t *testing.T) *Service {
	t.Helper()
	s, err := New(Deps{Relays: w, Claims: w, Deliveries: outbox.Sender{Store: w, Dispatcher: w, Lease: time.Minute, Now: now}, Inbox: w, Parts: w.heap, LateStatuses: w.heap},
		Options{Settings: Settings{Zone: london(t), MailDomain: "gw.example"}, Now: now})
	relaytest.NoError(t, err)
	return s
}

func vmn(id, number, action string, parameters ...string) Relay {
	return Relay{ID: id, Account: 1, Kind: VirtualNumber, Number: number, Action: Action{action, parameters}}
}

func geo(id, prefix, action string, parameters ...string) Relay {
	return Relay{ID: id, Account: 1, Kind: Geographic, Number: prefix, Action: Action{action, parameters}}
}

func receive(t *testing.T, s *Service, m ...Message) []Result {
	t.Helper()
	out, err := s.Receive(t.Context(), m)
	relaytest.NoError(t, err)
	return out
}

func numbered(id, to string) Message {
	m := *sample()
	m.ID, m.CarrierID, m.To = id, "c-"+id, to
	return m
}

func TestReceiveSendsToEveryParameter(t *testing.T) {
	w := newWorld(vmn("v1", "447860000001", HTTPGet, "http://a/?m=%msg", "http://b/%orig"), geo("g1", "4477", HTTPPost, "http://c/?i=%i"))
	got := receive(t, w.service(t), numbered("e1", "447860000001"), numbered("e2", "447712345678"))
	want := []Result{
		{MessageID: "e1", Account: 1, State: event.Done},
		{MessageID: "e2", Account: 1, State: event.Done},
	}
	relaytest.Equal(t, "the results", got, want)
	var targets []string
	for i, id := range w.sent {
		d := w.saved[id]
		targets = append(targets, d.Request.Method+" "+d.Request.URL)
		relaytest.Equal(t, "state, kind, time and lease of delivery "+id, []any{d.State, d.Kind, d.CreatedAt, w.leases[id]},
			[]any{outbox.Queued, outbox.KindRelay, now().Add(time.Duration(i)), now().Add(time.Minute)}) // in the order of the messages
	}
	relaytest.Equal(t, "the requests", targets, []string{"GET http://a/?m=h%C3%A9llo%20%26%20bye", "GET http://b/447700900123", "POST http://c/?i=e2"})
}

func TestReceiveAgainAfterACrash(t *testing.T) {
	w := newWorld(vmn("v1", "447860000001", HTTPGet, "http://a/", "http://b/"))
	batch := []Message{numbered("e1", "447860000001"), numbered("e2", "447860000001")}

	w.down = "deliveries" // the crash comes after the claim
	if _, err := w.service(t).Receive(t.Context(), batch); !errors.Is(err, errDown) {
		t.Fatalf("got %v", err)
	}
	w.down = ""
	for range 2 { // the second time adds nothing
		receive(t, w.service(t), batch...)
		relaytest.Equal(t, "the messages of the dispatched deliveries", w.messages(), []string{"e1", "e1", "e2", "e2"})
	}
}

func TestReceiveTakesACarriersIDOnce(t *testing.T) {
	w := newWorld(vmn("v1", "447860000001", HTTPGet, "http://a/"))
	change := func(id string, f func(*Message)) Message { m := numbered(id, "447860000001"); f(&m); return m }
	got := receive(t, w.service(t),
		change("e1", func(m *Message) { m.CarrierID = "x" }),
		change("e2", func(m *Message) { m.CarrierID = "x" }),
		change("e3", func(m *Message) { m.CarrierID, m.Carrier = "x", "kannel" }),
		change("e4", func(m *Message) { m.CarrierID, m.Account = "x", 1 }),
		change("e5", func(m *Message) { m.CarrierID = "" }),
		change("e6", func(m *Message) { m.CarrierID = "" }),
	)
	relaytest.Equal(t, "the messages of the dispatched deliveries", w.messages(), []string{"e1", "e3", "e4", "e5", "e6"})
	relaytest.Equal(t, "note and state of the duplicate", []any{got[1].Outcome, got[1].State}, []any{"duplicate of e1", event.Done})
}

func TestReceiveFailsAsAWholeWhenABackEndIsDown(t *testing.T) {
	for _, port := range []string{"version", "candidates", "claims", "deliveries", "inbox"} {
		t.Run(port, func(t *testing.T) {
			w := newWorld(vmn("v1", "447860000001", HTTPGet, "http://a/"), vmn("v2", "447860000002", DesktopSMS, "desk"))
			w.down = port
			batch := []Message{numbered("e1", "447860000001"), numbered("e2", "447860000002")}
			if _, err := w.service(t).Receive(t.Context(), batch); !errors.Is(err, errDown) {
				t.Errorf("got %v", err)
			}
			relaytest.Equal(t, "the number of dispatched deliveries", len(w.sent), 0)
		})
	}
}

func TestReceiveQuarantinesMessagesThatCannotBeRelayed(t *testing.T) {
	w := newWorld(
		geo("later", "447860000001", MVNO), vmn("broken", "447860000002", HTTPGet, "http://%dest/"),
		geo("hole", "4470", BlackHole), vmn("idle", "447000000001", Inactive),
	)
	bad := numbered("e6", "44x")
	badCoding := numbered("e7", "447860000001")
	badCoding.Coding = 3
	got := receive(t, w.service(t), numbered("e1", "447860000001"), numbered("e2", "447860000002"), numbered("e3", "447999"),
		numbered("e4", "4470123"), numbered("e5", "447000000001"), bad, badCoding)
	for i, want := range []struct {
		state event.State
		says  string
	}{
		{event.Quarantined, "geo relay later cannot be performed: The action mvno needs a relay that names a SIM."},
		{event.Quarantined, "%dest"},
		{event.Unrouted, "no relay for 447999"},
		{event.Done, ""},
		{event.Done, ""},
		{event.Quarantined, `"44x"`},
		{event.Quarantined, "coding 3"},
	} {
		relaytest.Equal(t, fmt.Sprintf("state and note of message %d", i), []any{got[i].State, got[i].Outcome}, []any{want.state, ""})
		if !strings.Contains(got[i].Reason, want.says) {
			t.Errorf("the reason %q of message %d lacks %q", got[i].Reason, i, want.says)
		}
	}
	relaytest.Equal(t, "the notes of the discarded messages", []string{strings.Join(got[3].Notes, ""), strings.Join(got[4].Notes, "")}, []string{
		"nothing is delivered: geo relay hole: black_hole, 0 deliveries", "nothing is delivered: vmn relay idle: inactive, 0 deliveries",
	})
	if len(w.sent)+len(w.saved) != 0 {
		t.Errorf("something was sent: %v", w.sent)
	}
}

func TestAChangeTakesEffectWithTheNextMessage(t *testing.T) {
	w := newWorld(vmn("v1", "447860000001", HTTPGet, "http://old/"))
	s := w.service(t)
	receive(t, s, numbered("e1", "447860000001"))
	receive(t, s, numbered("e2", "447860000001"))
	if w.lookups != 1 {
		t.Errorf("%d lookups while nothing changed", w.lookups)
	}
	w.relays[0].Action.Parameters = []string{"http://new/"}
	w.version++
	receive(t, s, numbered("e3", "447860000001"))
	if d := w.saved[w.sent[2]]; d.Target() != "http://new/" {
		t.Errorf("sent to %s", d.Target())
	}
}

func TestAChangeDuringTheLookupIsSeenByTheNextMessage(t *testing.T) {
	w := newWorld(vmn("v1", "447860000001", HTTPGet, "http://old/"))
	s := w.service(t)
	w.duringIt = func() { // after the relays were read, before they are remembered
		w.duringIt = nil
		w.relays = []Relay{vmn("v1", "447860000001", HTTPGet, "http://new/")}
		w.version++
		if _, err := s.Explain(t.Context(), numbered("x", "447860000001")); err != nil {
			t.Error(err)
		}
	}
	receive(t, s, numbered("e1", "447860000001"))
	receive(t, s, numbered("e2", "447860000001"))
	if d := w.saved[w.sent[1]]; d.Target() != "http://new/" {
		t.Errorf("sent to %s", d.Target())
	}
}

func TestExplainSendsNothing(t *testing.T) {
	w := newWorld(vmn("v1", "447860000001", Email, "a@example.com"), geo("g1", "4478", BlackHole), geo("g2", "447860", BlackHole))
	d, err := w.service(t).Explain(t.Context(), numbered("e1", "447860000001"))
	relaytest.NoError(t, err)
	relaytest.Equal(t, "the matched relay and its reason", []string{d.Matched.ID, d.Why}, []string{"v1", "is the virtual number 447860000001"})
	relaytest.Equal(t, "the number of deliveries", len(d.Deliveries), 1)
	if len(d.Considered) != 3 {
		t.Fatalf("%d relays were considered, want 3", len(d.Considered))
	}
	relaytest.Equal(t, "the second relay and its reason", []string{d.Considered[1].ID, d.Considered[1].Why},
		[]string{"g2", "has the prefix 447860, but vmn relay v1 goes before it"})
	relaytest.Equal(t, "the saved deliveries, dispatched deliveries and claims", []int{len(w.saved), len(w.sent), len(w.holders)}, []int{0, 0, 0})
}

func TestNewRequiresItsDependencies(t *testing.T) {
	if _, err := New(Deps{}, Options{}); err == nil {
		t.Error("a service without dependencies was made")
	}
}
