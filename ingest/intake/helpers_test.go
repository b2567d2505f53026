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

// setDown renames the table, or restores its name.
func (s *testStatuses) setDown(down bool) {
	s.t.Helper()
	statement := "ALTER TABLE event_mark_away RENAME TO event_mark"
	if down {
		statement = "ALTER TABLE event_mark RENAME TO event_mark_away"
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
	key   func(it *Item) uint64 // nil: no keys
	mu    sync.Mutex
	seen  map[uint64]int // how often each came to an end
	order []uint64
	calls int
	busy  int
	most  int // calls at a time
	// before may return an error for a whole call.
	before func(ctx context.Context, items []Item) error
	// each may return an error or a status for an item, or panic.
	each func(it Item) (*event.Status, error)
}

// Parse returns the content "seen" and the key that the test set.
func (p *script) Parse(it *Item) (content string, keys []uint64, err error) {
	if p.key != nil {
		keys = []uint64{p.key(it)}
	}
	return "seen", keys, nil
}

func (p *script) Describe(Parsed[string]) string { return "" }

func (p *script) Process(ctx context.Context, parsed []Parsed[string]) ([]event.Status, error) {
	items := make([]Item, len(parsed))
	for n, it := range parsed {
		if items[n] = *it.Item; it.Content != "seen" {
			return nil, fmt.Errorf("%s has the content %q", it.ID, it.Content)
		}
	}
	p.mu.Lock()
	p.calls++
	p.busy++
	p.most = max(p.most, p.busy)
	before, each := p.before, p.each
	p.mu.Unlock()
	defer func() {
		p.mu.Lock()
		p.busy--
		p.mu.Unlock()
	}()
	if before != nil {
		if err := before(ctx, items); err != nil {
			return nil, err
		}
	}
	var statuses []event.Status
	for _, it := range items {
		if each == nil {
			break
		}
		m, err := each(it)
		if err != nil {
			return nil, err
		}
		if m != nil {
			statuses = append(statuses, *m)
		}
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, it := range items {
		p.seen[it.Seq]++
		p.order = append(p.order, it.Seq)
	}
	return statuses, nil
}

func (p *script) set(before func(context.Context, []Item) error, each func(Item) (*event.Status, error)) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.before, p.each = before, each
}

func (p *script) ended(seq uint64) int {
	p.mu.Lock()
	defer p.mu.Unlock()
	return p.seen[seq]
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
	r := &rig{t: t, dir: t.TempDir(), statuses: newStatuses(t), p: &script{seen: map[uint64]int{}}}
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

// accept accepts n entries, whose bodies contain their number.
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

func (r *rig) settled() {
	r.t.Helper()
	r.await("all is processed", func() bool { return r.Status().Lag == 0 })
}

// await waits until a condition holds; a test that fails shows the intake's status.
func (r *rig) await(what string, holds func() bool) {
	r.t.Helper()
	relaytest.Eventually(r.t, what, func() (any, bool) { return r.Status(), holds() })
}

func down() error { return relay.Errorf(relay.KindUnavailable, "redis is down") }
