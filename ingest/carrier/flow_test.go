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

// flow processes messages from the carrier's request to the first attempt, which it only records.
type flow struct {
	app         *fiber.App
	posts       *intake.Intake
	service     *inbound.Service
	clockOffset atomic.Int64 // of the service's clock, in ns
	db          *recordstest.Records
	statuses    *event.Statuses
	mu          sync.Mutex
	sent        map[string]int // attempts by target
	change      chan struct{}  // receives a signal after Dispatch
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

// targets returns the targets of all attempts, and the number of targets with several attempts.
func (f *flow) targets() (targets []string, repeated int) {
	f.mu.Lock()
	defer f.mu.Unlock()
	for target, n := range f.sent {
		targets = append(targets, target)
		if n > 1 {
			repeated++
		}
	}
	slices.Sort(targets)
	return targets, repeated
}

// wantSent compares the targets of attempts. Each must have one attempt.
func (f *flow) wantSent(t *testing.T, want ...string) {
	t.Helper()
	got, repeated := f.targets()
	relaytest.Equal(t, "the targets", got, want)
	relaytest.Equal(t, "the number of targets with several attempts", repeated, 0)
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

// newReplica returns a flow of the gateway node on a database.
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
	}, inbound.Options{Now: func() time.Time { return time.Now().Add(time.Duration(f.clockOffset.Load())) }})
	relaytest.NoError(t, err)
	log, err := journal.Open(t.TempDir(), journal.Options{})
	relaytest.NoError(t, err)
	f.posts, err = intake.New(event.SMS, node, log, f.statuses, NewProcessor(f.service), intake.Options{Logger: slog.New(slog.DiscardHandler)})
	relaytest.NoError(t, err)
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() { ended <- f.posts.Run(ctx) }()
	t.Cleanup(func() {
		cancel()
		if err := <-ended; err != nil {
			t.Error(err)
		}
		_ = log.Close()
	})
	f.app = newSurface(f.posts)
	return f
}

// waitProcessed waits until all accepted entries are processed.
func (f *flow) waitProcessed(t *testing.T) {
	t.Helper()
	redistest.Await(t, "all entries are processed", func(context.Context) bool { return f.posts.Status().Lag == 0 })
}

// post posts a message to the json adapter.
func (f *flow) post(t *testing.T, token, id, to, text string) {
	t.Helper()
	body := fmt.Sprintf(`{"id":%q,"from":"447700900123","to":%q,"text":%q}`, id, to, text)
	if status, got, _ := call(t, f.app, "POST", "/inbound/sms/json", token, body); status != 200 {
		t.Fatalf("answer = %d %s, want 200", status, got)
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
	status, body, _ := call(t, f.app, "GET", "/inbound/sms/kannel?id=k1&from=Bank&to=447860000001&text=%00%FF&coding=1&udh=%06%05%04%0B%84%23%F0", "carrier-1", "")
	relaytest.Equal(t, "the status for Kannel", status, 200)
	relaytest.Equal(t, "the answer for Kannel", body, "")
	f.waitProcessed(t)

	want := []string{
		"a@example.com", "b@example.com", "http://geo/447700900123?m=x", "http://other/?m=its%20own",
		"http://vmn/?m=00ff&o=Bank&s=0", "http://vmn/?m=h%C3%A9%20%26%20%25orig&o=447700900123&s=0",
	}
	f.wantSent(t, want...)
	saved, _, err := f.db.Deliveries.List(t.Context(), outbox.Filter{Limit: 100})
	relaytest.NoError(t, err)
	relaytest.Equal(t, "the number of stored deliveries", len(saved), len(want))
	f.wantStatuses(t, map[uint64]string{2: "done: duplicate of n1-s1", 5: "unrouted: the account has no relay for 449000000001"})
}

func TestRepeatedReplaysSendAMessageOnce(t *testing.T) {
	f := newFlow(t)
	f.post(t, "carrier-1", "a", "447860000001", "x")
	f.waitProcessed(t)
	f.wantStatuses(t, map[uint64]string{1: "unrouted: the account has no relay for 447860000001"})
	relaytest.NoError(t, f.db.Inbound.Put(t.Context(), relayTo(1, inbound.VirtualNumber, "v1", "447860000001", inbound.HTTPGet, "http://vmn/%id")))
	for range 2 {
		n, err := f.posts.Replay(t.Context(), event.Filter{}, false)
		relaytest.NoError(t, err)
		relaytest.Equal(t, "the number of replayed events", n, 1)
	}
	f.wantSent(t, "http://vmn/n1-s1")
	f.wantStatuses(t, nil)
}

func TestMessagesAreAcceptedWhileTheDatabaseIsDown(t *testing.T) {
	server := dbtest.StartPostgres(t)
	f := newReplica(t, recordstest.OpenURL(t, server.NewDatabase(t)), "n1", relayTo(1, inbound.Geographic, "g1", "44", inbound.HTTPGet, "http://geo/?m=%m"))
	f.post(t, "carrier-1", "earlier", "44780", "earlier")
	f.waitProcessed(t)
	server.Kill()
	for i := range 20 {
		f.post(t, "carrier-1", fmt.Sprint(i), "44780", fmt.Sprint("during-", i))
	}
	server.Start()
	f.waitProcessed(t)
	got, repeated := f.targets()
	relaytest.Equal(t, "the number of sent messages", len(got), 21)
	relaytest.Equal(t, "the number of messages with several attempts", repeated, 0)
}
