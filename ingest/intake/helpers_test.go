package intake

import (
	"context"
	"fmt"
	"log/slog"
	"math"
	"sync"
	"testing"

	"github.com/penstock/penstock/ingest/journal"
	"github.com/penstock/penstock/relay"
	"github.com/penstock/penstock/relay/db"
	"github.com/penstock/penstock/relay/db/dbtest"
	"github.com/penstock/penstock/relay/event"
	"github.com/penstock/penstock/relay/relaytest"
)

// testStatuses is a store of statuses in SQLite that a test can make unavailable.
type testStatuses struct {
	*event.Statuses
	t  *testing.T
	db *db.DB
}

func newStatuses(t *testing.T) *testStatuses {
	database := dbtest.Open(t, db.Options{})
	return &testStatuses{event.NewStatuses(database, "n1"), t, database}
}

// setDown makes every statement fail, by renaming the table, or restores the name.
func (s *testStatuses) setDown(down bool) {
	s.t.Helper()
	statement := "ALTER TABLE event_mark_renamed RENAME TO event_mark"
	if down {
		statement = "ALTER TABLE event_mark RENAME TO event_mark_renamed"
	}
	relaytest.NoError(s.t, s.db.Run(s.t.Context(), "test", statement))
}

// reasons returns the statuses by sequence, as "state: reason".
func (s *testStatuses) reasons() map[uint64]string {
	s.t.Helper()
	statuses := relaytest.Must(s.Get(s.t.Context(), event.Uplink, 0, math.MaxUint64))(s.t)
	reasons := make(map[uint64]string, len(statuses))
	for seq, status := range statuses {
		reasons[seq] = string(status.State) + ": " + status.Reason
	}
	return reasons
}

// script is a processor whose result for each item is set by the test.
type script struct {
	key        func(item *Item) uint64 // nil for no keys
	mu         sync.Mutex
	counts     map[uint64]int // successful calls with an item, by sequence
	order      []uint64       // the sequences of processed items
	calls      int
	running    int
	maxRunning int // the highest value of running
	// onCall may return an error for a whole call.
	onCall func(ctx context.Context, items []Item) error
	// onItem may return an error or a status for an item, or panic.
	onItem func(item Item) (*event.Status, error)
}

// Parse returns the content "parsed" and the key that the test chose.
func (p *script) Parse(item *Item) (content string, keys []uint64, err error) {
	if p.key != nil {
		keys = []uint64{p.key(item)}
	}
	return "parsed", keys, nil
}

func (p *script) Describe(ParsedItem[string]) string { return "" }

func (p *script) Process(ctx context.Context, parsed []ParsedItem[string]) ([]event.Status, error) {
	items := make([]Item, len(parsed))
	for n, item := range parsed {
		if items[n] = *item.Item; item.Content != "parsed" {
			return nil, fmt.Errorf("content of %s = %q, want parsed", item.ID, item.Content)
		}
	}
	p.mu.Lock()
	p.calls++
	p.running++
	p.maxRunning = max(p.maxRunning, p.running)
	onCall, onItem := p.onCall, p.onItem
	p.mu.Unlock()
	defer func() {
		p.mu.Lock()
		p.running--
		p.mu.Unlock()
	}()
	if onCall != nil {
		if err := onCall(ctx, items); err != nil {
			return nil, err
		}
	}
	var statuses []event.Status
	for _, item := range items {
		if onItem == nil {
			break
		}
		status, err := onItem(item)
		if err != nil {
			return nil, err
		}
		if status != nil {
			statuses = append(statuses, *status)
		}
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, item := range items {
		p.counts[item.Seq]++
		p.order = append(p.order, item.Seq)
	}
	return statuses, nil
}

// setHooks replaces the functions that later calls of Process run; nil runs none.
func (p *script) setHooks(onCall func(context.Context, []Item) error, onItem func(Item) (*event.Status, error)) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.onCall, p.onItem = onCall, onItem
}

// processedCount returns the number of successful calls of Process with an item.
func (p *script) processedCount(seq uint64) int {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.counts[seq]
}

// rig is an intake with a journal in the test's directory.
type rig struct {
	*Intake
	t        *testing.T
	dir      string
	log      *journal.Log
	statuses *testStatuses
	p        *script
}

func newRig(t *testing.T, o Options) *rig {
	t.Helper()
	r := &rig{t: t, dir: t.TempDir(), statuses: newStatuses(t), p: &script{counts: map[uint64]int{}}}
	if o.Linger == 0 {
		o.Linger = -1
	}
	o.Logger = slog.New(slog.DiscardHandler)
	r.open(o)
	t.Cleanup(func() { _ = r.log.Close() })
	return r
}

func (r *rig) open(o Options) {
	r.t.Helper()
	var err error
	if r.log, err = journal.Open(r.dir, journal.Options{Logger: slog.New(slog.DiscardHandler), CommitWindow: -1}); err != nil {
		r.t.Fatal(err)
	}
	if r.Intake, err = New(event.Uplink, "n1", r.log, r.statuses.Statuses, r.p, o); err != nil {
		r.t.Fatal(err)
	}
}

// accept accepts n entries of account 7 with the bodies {"n":0}, {"n":1} and so on.
func (r *rig) accept(n int) {
	r.t.Helper()
	for k := range n {
		e := Entry{Account: 7, Source: "generic", Path: "/webhooks/generic/tank%20" + fmt.Sprint(k), Body: fmt.Appendf(nil, `{"n":%d}`, k)}
		if _, err := r.Accept(r.t.Context(), &e); err != nil {
			r.t.Fatal(err)
		}
	}
}

// run processes entries until stop is called or the test ends.
func (r *rig) run() (stop func()) {
	ctx, cancel := context.WithCancel(context.Background())
	ended := make(chan error, 1)
	go func() { ended <- r.Run(ctx) }()
	stop = sync.OnceFunc(func() {
		cancel()
		if err := <-ended; err != nil {
			r.t.Error(err)
		}
	})
	r.t.Cleanup(stop)
	return stop
}

// waitProcessed waits until the checkpoint has reached the end of the journal.
func (r *rig) waitProcessed() {
	r.t.Helper()
	r.await("all entries are processed", func() bool { return r.Status().Lag == 0 })
}

// await waits until a condition holds. The failure text includes the intake's status.
func (r *rig) await(label string, holds func() bool) {
	r.t.Helper()
	relaytest.Eventually(r.t, label, func() (any, bool) { return r.Status(), holds() })
}

// errDown returns the error of a back end that is down.
func errDown() error { return relay.Errorf(relay.KindUnavailable, "redis is down") }
