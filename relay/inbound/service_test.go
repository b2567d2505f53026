package inbound

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/penstock/penstock/relay/db"
	"github.com/penstock/penstock/relay/db/dbtest"
	"github.com/penstock/penstock/relay/event"
	"github.com/penstock/penstock/relay/outbox"
	"github.com/penstock/penstock/relay/relaytest"
)

// world is the environment of a Service: a store on SQLite with a clock that tests set, and a
// dispatcher.
type world struct {
	t          *testing.T
	store      *Store
	deliveries *outbox.Store
	clock      time.Time
	sent       []outbox.Delivery // dispatched deliveries
	notes      []string          // statuses passed to Put
	noteErr    error
}

func now() time.Time { return time.Date(2026, 7, 1, 11, 0, 3, 0, time.UTC) }

func newWorld(t *testing.T, relays ...Relay) *world {
	t.Helper()
	w := &world{t: t, clock: now()}
	database := dbtest.Open(t, db.Options{Now: w.now})
	w.store, w.deliveries = NewStore(database), outbox.NewStore(database)
	for _, r := range relays {
		relaytest.NoError(t, w.store.Put(t.Context(), r))
	}
	return w
}

func (w *world) now() time.Time { return w.clock }

func (w *world) service() *Service {
	w.t.Helper()
	sender := outbox.Sender{Store: w.deliveries, Dispatcher: w, Lease: time.Minute, Now: w.now}
	s, err := New(Deps{Store: w.store, Deliveries: sender, LateStatuses: w},
		Options{Settings: Settings{Zone: london(w.t), MailDomain: "gw.example"}, Now: w.now})
	relaytest.NoError(w.t, err)
	return s
}

func (w *world) Dispatch(ds []outbox.Delivery) { w.sent = append(w.sent, ds...) }

// Put records the status of an event in notes.
func (w *world) Put(_ context.Context, m *Message, r Result) error {
	if w.noteErr == nil {
		w.notes = append(w.notes, m.ID+": "+cmp.Or(r.Reason, r.Outcome))
	}
	return w.noteErr
}

// messages returns the ids of the messages of the dispatched deliveries.
func (w *world) messages() (ids []string) {
	for i := range w.sent {
		ids = append(ids, w.sent[i].MessageID)
	}
	return ids
}

// rows returns the number of rows of a table.
func (w *world) rows(table string) int {
	w.t.Helper()
	return relaytest.Must(db.Value[int](w.t.Context(), w.store.db, table, "SELECT COUNT(*) FROM "+table))(w.t)
}

// breakTable makes every statement on a table fail until mend is called.
func (w *world) breakTable(table string) (mend func()) {
	w.t.Helper()
	rename := func(oldName, newName string) {
		w.t.Helper()
		relaytest.NoError(w.t, w.store.db.Run(w.t.Context(), "test", "ALTER TABLE "+oldName+" RENAME TO "+newName))
	}
	rename(table, "broken_"+table)
	return func() { w.t.Helper(); rename("broken_"+table, table) }
}

// errDown is the error of a back end that is down.
var errDown = errors.New("down")

func vmn(id, number, action string, parameters ...string) Relay {
	return Relay{ID: id, Account: 1, Kind: VirtualNumber, Number: number, Action: Action{action, parameters}}
}

func geo(id, prefix, action string, parameters ...string) Relay {
	return Relay{ID: id, Account: 1, Kind: Geographic, Number: prefix, Action: Action{action, parameters}}
}

func receive(t *testing.T, s *Service, m ...Message) []Result {
	t.Helper()
	results, err := s.Receive(t.Context(), m)
	relaytest.NoError(t, err)
	return results
}

func numbered(id, number string) Message {
	m := *sample()
	m.ID, m.CarrierID, m.To = id, "c-"+id, number
	return m
}

func TestReceiveSendsToEveryParameter(t *testing.T) {
	w := newWorld(t, vmn("v1", "447860000001", HTTPGet, "http://a/?m=%msg", "http://b/%orig"), geo("g1", "4477", HTTPPost, "http://c/?i=%i"))
	got := receive(t, w.service(), numbered("e1", "447860000001"), numbered("e2", "447712345678"))
	want := []Result{
		{MessageID: "e1", Account: 1, State: event.Done},
		{MessageID: "e2", Account: 1, State: event.Done},
	}
	relaytest.Equal(t, "the results", got, want)
	var targets []string
	for i, d := range w.sent {
		targets = append(targets, d.Request.Method+" "+d.Request.URL)
		relaytest.Equal(t, "state, kind, time and lease of delivery "+d.ID, []any{d.State, d.Kind, d.CreatedAt, d.NextAttemptAt},
			[]any{outbox.Queued, outbox.KindRelay, now().Add(time.Duration(i)), now().Add(time.Minute)}) // in the order of the messages
	}
	relaytest.Equal(t, "the requests", targets, []string{"GET http://a/?m=h%C3%A9llo%20%26%20bye", "GET http://b/447700900123", "POST http://c/?i=e2"})
}

func TestReceiveIsRepeatedAfterACrash(t *testing.T) {
	w := newWorld(t, vmn("v1", "447860000001", HTTPGet, "http://a/", "http://b/"))
	batch := []Message{numbered("e1", "447860000001"), numbered("e2", "447860000001")}

	mend := w.breakTable("delivery") // the crash happens after the claim
	if _, err := w.service().Receive(t.Context(), batch); err == nil {
		t.Fatal("Receive returned no error, although no delivery was saved")
	}
	mend()
	for range 2 { // the second call adds no delivery
		receive(t, w.service(), batch...)
		relaytest.Equal(t, "the messages of the dispatched deliveries", w.messages(), []string{"e1", "e1", "e2", "e2"})
	}
}

func TestReceiveDropsDuplicatesByCarrierID(t *testing.T) {
	w := newWorld(t, vmn("v1", "447860000001", HTTPGet, "http://a/"))
	change := func(id string, f func(*Message)) Message { m := numbered(id, "447860000001"); f(&m); return m }
	got := receive(t, w.service(),
		change("e1", func(m *Message) { m.CarrierID = "x" }),
		change("e2", func(m *Message) { m.CarrierID = "x" }),
		change("e3", func(m *Message) { m.CarrierID, m.Carrier = "x", "kannel" }),
		change("e4", func(m *Message) { m.CarrierID, m.Account = "x", 1 }),
		change("e5", func(m *Message) { m.CarrierID = "" }),
		change("e6", func(m *Message) { m.CarrierID = "" }),
	)
	relaytest.Equal(t, "the messages of the dispatched deliveries", w.messages(), []string{"e1", "e3", "e4", "e5", "e6"})
	relaytest.Equal(t, "outcome and state of the duplicate", []any{got[1].Outcome, got[1].State}, []any{"duplicate of e1", event.Done})
}

func TestReceiveFailsWithoutEachTable(t *testing.T) {
	for _, table := range []string{"version", "relay", "carrier_id", "delivery", "inbox"} {
		t.Run(table, func(t *testing.T) {
			w := newWorld(t, vmn("v1", "447860000001", HTTPGet, "http://a/"), vmn("v2", "447860000002", DesktopSMS, "desk"))
			w.breakTable(table)
			batch := []Message{numbered("e1", "447860000001"), numbered("e2", "447860000002")}
			if _, err := w.service().Receive(t.Context(), batch); err == nil {
				t.Error("Receive returned no error")
			}
			relaytest.Equal(t, "the number of dispatched deliveries", len(w.sent), 0)
		})
	}
}

func TestReceiveQuarantinesMessagesThatCannotBeRelayed(t *testing.T) {
	w := newWorld(t,
		geo("later", "447860000001", MVNO), vmn("broken", "447860000002", HTTPGet, "http://%dest/"),
		geo("hole", "4470", BlackHole), vmn("idle", "447000000001", Inactive),
	)
	bad := numbered("e6", "44x")
	badCoding := numbered("e7", "447860000001")
	badCoding.Coding = 3
	got := receive(t, w.service(), numbered("e1", "447860000001"), numbered("e2", "447860000002"), numbered("e3", "447999"),
		numbered("e4", "4470123"), numbered("e5", "447000000001"), bad, badCoding)
	for i, want := range []struct {
		state  event.State
		reason string
	}{
		{event.Quarantined, "the geographic relay later cannot be used: The action mvno needs a relay that names a SIM."},
		{event.Quarantined, "%dest"},
		{event.Unrouted, "no relay for 447999"},
		{event.Done, ""},
		{event.Done, ""},
		{event.Quarantined, `"44x"`},
		{event.Quarantined, "coding 3"},
	} {
		relaytest.Equal(t, fmt.Sprintf("state and outcome of message %d", i), []any{got[i].State, got[i].Outcome}, []any{want.state, ""})
		if !strings.Contains(got[i].Reason, want.reason) {
			t.Errorf("reason of message %d = %q, want %q", i, got[i].Reason, want.reason)
		}
	}
	relaytest.Equal(t, "the notes of the discarded messages", []string{strings.Join(got[3].Notes, ""), strings.Join(got[4].Notes, "")}, []string{
		"nothing is delivered: the geographic relay hole discards the message", "nothing is delivered: the virtual number relay idle discards the message",
	})
	if len(w.sent)+w.rows("delivery") != 0 {
		t.Errorf("deliveries = %v, want none", w.sent)
	}
}

func TestAChangedRelayAppliesToTheNextMessage(t *testing.T) {
	const number = "447860000001"
	w := newWorld(t, vmn("v1", number, HTTPGet, "http://old/"))
	s := w.service()
	receive(t, s, numbered("e1", number))
	cachedRelay := func() *CompiledRelay {
		return relaytest.Must(s.relayCache.relays(t.Context(), []string{number}))(t)[number][0]
	}
	if cached := cachedRelay(); cachedRelay() != cached {
		t.Error("an unchanged relay was read again")
	}
	relaytest.NoError(t, w.store.Put(t.Context(), vmn("v1", number, HTTPGet, "http://new/")))
	receive(t, s, numbered("e2", number))
	relaytest.Equal(t, "the target after the change", w.sent[1].Target(), "http://new/")
}

func TestAChangeDuringTheLookupAppliesToTheNextMessage(t *testing.T) {
	const number = "447860000001"
	w := newWorld(t, vmn("v1", number, HTTPGet, "http://old/"))
	c := &w.service().relayCache
	version := relaytest.Must(w.store.Version(t.Context()))(t)
	relays, missing := c.lookup(version, []string{number})
	candidates := relaytest.Must(w.store.Candidates(t.Context(), missing))(t)
	// The relay changes, and another lookup caches the new relay, before the old relay is cached.
	relaytest.NoError(t, w.store.Put(t.Context(), vmn("v1", number, HTTPGet, "http://new/")))
	relaytest.Must(c.relays(t.Context(), []string{number}))(t)
	c.add(version, missing, candidates, relays)
	nextRelays := relaytest.Must(c.relays(t.Context(), []string{number}))(t)
	relaytest.Equal(t, "the parameters for the next message", nextRelays[number][0].Action.Parameters, []string{"http://new/"})
}

func TestExplainCreatesNoDeliveries(t *testing.T) {
	w := newWorld(t, vmn("v1", "447860000001", Email, "a@example.com"), geo("g1", "4478", BlackHole), geo("g2", "447860", BlackHole))
	d, err := w.service().Explain(t.Context(), numbered("e1", "447860000001"))
	relaytest.NoError(t, err)
	relaytest.Equal(t, "the matched relay and its reason", []string{d.Matched.ID, d.MatchReason}, []string{"v1", "its number is 447860000001"})
	relaytest.Equal(t, "the number of deliveries", len(d.Deliveries), 1)
	if len(d.Considered) != 3 {
		t.Fatalf("considered relays = %d, want 3", len(d.Considered))
	}
	relaytest.Equal(t, "the second relay and its reason", []string{d.Considered[1].ID, d.Considered[1].Reason},
		[]string{"g2", "its prefix 447860 matches, but the virtual number relay v1 takes precedence"})
	relaytest.Equal(t, "the saved deliveries, dispatched deliveries and claims", []int{w.rows("delivery"), len(w.sent), w.rows("carrier_id")}, []int{0, 0, 0})
}

func TestNewRequiresItsDependencies(t *testing.T) {
	if _, err := New(Deps{}, Options{}); err == nil {
		t.Error("New without dependencies returned no error")
	}
}
