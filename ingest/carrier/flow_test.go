package carrier

import (
	"context"
	"fmt"
	"log/slog"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/gofiber/fiber/v2"

	"github.com/penstock/penstock/ingest/intake"
	"github.com/penstock/penstock/ingest/journal"
	"github.com/penstock/penstock/relay"
	"github.com/penstock/penstock/relay/cache/redistest"
	"github.com/penstock/penstock/relay/db/dbtest"
	"github.com/penstock/penstock/relay/event"
	"github.com/penstock/penstock/relay/inbound"
	"github.com/penstock/penstock/relay/outbox"
	"github.com/penstock/penstock/relay/recordstest"
	"github.com/penstock/penstock/relay/relaytest"
)

// flow is the way of a message from the carrier's request to the first attempt,
// with nothing replaced but the attempt.
type flow struct {
	app      *fiber.App
	in       *intake.Intake
	service  *inbound.Service
	ahead    atomic.Int64 // ns that the service's clock is fast
	db       *recordstest.Records
	statuses *event.Statuses
	mu       sync.Mutex
	sent     map[string]int // target → attempts
	change   chan struct{}
}

func (f *flow) Dispatch(ds []outbox.Delivery) {
	f.mu.Lock()
	defer f.mu.Unlock()
	for _, d := range ds {
		f.sent[d.Target()]++
	}
	select {
	case f.change <- struct{}{}:
	default:
	}
}

func (f *flow) targets() (out []string, twice int) {
	f.mu.Lock()
	defer f.mu.Unlock()
	for target, n := range f.sent {
		out = append(out, target)
		if n > 1 {
			twice++
		}
	}
	slices.Sort(out)
	return out, twice
}

// wantSent compares the targets, in order, each of which must have been sent to once.
func (f *flow) wantSent(t *testing.T, want ...string) {
	t.Helper()
	got, twice := f.targets()
	relaytest.Equal(t, "the targets", got, want)
	relaytest.Equal(t, "the number of targets sent to twice", twice, 0)
}

// wantStatuses compares the state and the reason or outcome of events by sequence.
func (f *flow) wantStatuses(t *testing.T, want map[uint64]string) {
	t.Helper()
	statuses, err := f.statuses.Get(t.Context(), event.SMS, 1, 100)
	relaytest.NoError(t, err)
	var got map[uint64]string
	for seq, s := range statuses {
		if got == nil {
			got = make(map[uint64]string)
		}
		got[seq] = fmt.Sprintf("%s: %s%s", s.State, s.Reason, s.Outcome)
	}
	relaytest.Equal(t, "the statuses", got, want)
}

func newFlow(t *testing.T, relays ...inbound.Relay) *flow {
	t.Helper()
	return newReplica(t, recordstest.Open(t), "n1", relays...)
}

// newReplica is one of several gateways on the same database.
func newReplica(t *testing.T, db *recordstest.Records, node string, relays ...inbound.Relay) *flow {
	t.Helper()
	f := &flow{db: db, sent: make(map[string]int), change: make(chan struct{}, 1)}
	var err error
	f.statuses = f.db.Statuses(node)
	for _, r := range relays {
		relaytest.NoError(t, f.db.Inbound.Put(t.Context(), r))
	}
	f.service, err = inbound.New(inbound.Deps{
		Store: f.db.Inbound, Deliveries: outbox.Sender{Store: f.db.Deliveries, Dispatcher: f, Lease: time.Minute},
		LateStatuses: NewLateStatuses(func(node string) *event.Statuses { return f.db.Statuses(node) }),
	}, inbound.Options{Now: func() time.Time { return time.Now().Add(time.Duration(f.ahead.Load())) }})
	relaytest.NoError(t, err)
	log, err := journal.Open(t.TempDir(), journal.Options{})
	relaytest.NoError(t, err)
	f.in, err = intake.New(event.SMS, node, log, f.statuses, NewProcessor(f.service), intake.Options{Logger: slog.New(slog.DiscardHandler)})
	relaytest.NoError(t, err)
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() { ended <- f.in.Run(ctx) }()
	t.Cleanup(func() {
		cancel()
		if err := <-ended; err != nil {
			t.Error(err)
		}
		_ = log.Close()
	})
	f.app = surface(f.in)
	return f
}

// settled waits until all that was accepted has been processed.
func (f *flow) settled(t *testing.T) {
	t.Helper()
	redistest.Await(t, "all is processed", func(context.Context) bool { return f.in.Status().Lag == 0 })
}

func (f *flow) post(t *testing.T, token, id, to, text string) {
	t.Helper()
	body := fmt.Sprintf(`{"id":%q,"from":"447700900123","to":%q,"text":%q}`, id, to, text)
	if status, got, _ := ask(t, f.app, "POST", "/inbound/sms/json", token, body); status != 200 {
		t.Fatalf("%d %s", status, got)
	}
}

func relayTo(acct relay.AccountID, k inbound.Kind, id, number, action string, parameters ...string) inbound.Relay {
	return inbound.Relay{ID: id, Account: acct, Kind: k, Number: number, Action: inbound.Action{Name: action, Parameters: parameters}}
}

func TestAMessageReachesItsRelay(t *testing.T) {
	f := newFlow(t,
		relayTo(1, inbound.VirtualNumber, "v1", "447860000001", inbound.HTTPGet, "http://vmn/?m=%msg&o=%orig&s=%stat"),
		relayTo(1, inbound.Geographic, "g1", "4478", inbound.HTTPPost, "http://geo/%o?m=%m"),
		relayTo(1, inbound.Geographic, "g2", "4479", inbound.Email, "a@example.com", "b@example.com"),
		relayTo(2, inbound.VirtualNumber, "v1", "449000000001", inbound.HTTPGet, "http://other/?m=%msg"),
	)
	f.post(t, "carrier-1", "a", "+447860000001", "hé & %orig")
	f.post(t, "carrier-1", "a", "+447860000001", "the same id again")
	f.post(t, "carrier-1", "b", "447811111111", "x")
	f.post(t, "carrier-1", "c", "447911111111", "mail")
	f.post(t, "carrier-1", "d", "449000000001", "another account's number")
	f.post(t, "carrier-2", "a", "449000000001", "its own")
	status, body, _ := ask(t, f.app, "GET", "/inbound/sms/kannel?id=k1&from=Bank&to=447860000001&text=%00%FF&coding=1&udh=%06%05%04%0B%84%23%F0", "carrier-1", "")
	relaytest.Equal(t, "the status for Kannel", status, 200)
	relaytest.Equal(t, "the answer for Kannel", body, "")
	f.settled(t)

	want := []string{
		"a@example.com", "b@example.com", "http://geo/447700900123?m=x", "http://other/?m=its%20own",
		"http://vmn/?m=00ff&o=Bank&s=0", "http://vmn/?m=h%C3%A9%20%26%20%25orig&o=447700900123&s=0",
	}
	f.wantSent(t, want...)
	saved, _, err := f.db.Deliveries.List(t.Context(), outbox.Filter{Limit: 100})
	relaytest.NoError(t, err)
	relaytest.Equal(t, "the number of deliveries saved", len(saved), len(want))
	f.wantStatuses(t, map[uint64]string{2: "done: duplicate of n1-s1", 5: "unrouted: no relay of account 1 for 449000000001"})
}

func TestAReplayAfterARelayWasAddedSendsOnce(t *testing.T) {
	f := newFlow(t)
	f.post(t, "carrier-1", "a", "447860000001", "x")
	f.settled(t)
	f.wantStatuses(t, map[uint64]string{1: "unrouted: no relay of account 1 for 447860000001"})
	relaytest.NoError(t, f.db.Inbound.Put(t.Context(), relayTo(1, inbound.VirtualNumber, "v1", "447860000001", inbound.HTTPGet, "http://vmn/%id")))
	for range 2 {
		n, err := f.in.Replay(t.Context(), event.Filter{}, false)
		relaytest.NoError(t, err)
		relaytest.Equal(t, "the number of events replayed", n, 1)
	}
	f.wantSent(t, "http://vmn/n1-s1")
	f.wantStatuses(t, nil)
}

func TestMessagesAreAcceptedWhileTheDatabaseIsDown(t *testing.T) {
	server := dbtest.StartPostgres(t)
	f := newReplica(t, recordstest.OpenURL(t, server.NewDatabase(t)), "n1", relayTo(1, inbound.Geographic, "g1", "44", inbound.HTTPGet, "http://geo/?m=%m"))
	f.post(t, "carrier-1", "before", "44780", "before")
	f.settled(t)
	server.Kill()
	for i := range 20 {
		f.post(t, "carrier-1", fmt.Sprint(i), "44780", fmt.Sprint("during-", i))
	}
	server.Start()
	f.settled(t)
	got, twice := f.targets()
	relaytest.Equal(t, "the number of messages sent", len(got), 21)
	relaytest.Equal(t, "the number of messages sent twice", twice, 0)
}
