package intake

import (
	"cmp"
	"context"
	"fmt"
	"log/slog"
	"slices"
	"sync"
	"testing"

	"github.com/penstock/penstock/ingest/journal"
	"github.com/penstock/penstock/relay"
	"github.com/penstock/penstock/relay/event"
	"github.com/penstock/penstock/relay/relaytest"
)

// memoryStatuses is an event.Statuses that can be down.
type memoryStatuses struct {
	mu       sync.Mutex
	statuses map[uint64]event.Status
	down     error
	sets     int
}

func (m *memoryStatuses) Set(_ context.Context, _ event.Kind, statuses []event.Status) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.sets++
	if m.down != nil {
		return m.down
	}
	for _, one := range statuses {
		if one.State == event.Done {
			delete(m.statuses, one.Seq)
		} else {
			m.statuses[one.Seq] = one
		}
	}
	return nil
}

func (m *memoryStatuses) Get(_ context.Context, _ event.Kind, from, to uint64) (map[uint64]event.Status, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	out := make(map[uint64]event.Status)
	for seq, one := range m.statuses {
		if seq >= from && seq <= to {
			out[seq] = one
		}
	}
	return out, m.down
}

func (m *memoryStatuses) List(_ context.Context, _ event.Kind, s event.State, before uint64, limit int) ([]event.Status, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	var out []event.Status
	for seq, one := range m.statuses {
		if seq < before && one.State == s {
			out = append(out, one)
		}
	}
	slices.SortFunc(out, func(a, b event.Status) int { return cmp.Compare(b.Seq, a.Seq) })
	return out[:min(limit, len(out))], m.down
}

func (m *memoryStatuses) Deferred(_ context.Context, _ event.Kind, after relay.AccountID, limit int) ([]event.Status, error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	var out []event.Status
	for _, one := range m.statuses {
		if one.Account > after && one.State == event.Pending {
			out = append(out, one)
		}
	}
	slices.SortFunc(out, func(a, b event.Status) int {
		return cmp.Or(cmp.Compare(a.Account, b.Account), cmp.Compare(a.Seq, b.Seq))
	})
	return out[:min(limit, len(out))], m.down
}

func (m *memoryStatuses) Counts(context.Context, event.Kind) (map[event.State]int, error) {
	return nil, nil
}

func (m *memoryStatuses) Trim(_ context.Context, _ event.Kind, below uint64) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	for seq := range m.statuses {
		if seq < below {
			delete(m.statuses, seq)
		}
	}
	return nil
}

func (m *memoryStatuses) setDown(err error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.down = err
}

// reasons are the statuses by sequence, as "state: reason".
func (m *memoryStatuses) reasons() map[uint64]string {
	m.mu.Lock()
	defer m.mu.Unlock()
	out := make(map[uint64]string, len(m.statuses))
	for seq, one := range m.statuses {
		out[seq] = string(one.State) + ": " + one.Reason
	}
	return out
}

// script is a processor whose answer to each item is written by the test.
type script struct {
	mu    sync.Mutex
	seen  map[uint64]int // how often each came to an end
	order []uint64
	calls int
	busy  int
	most  int // calls at a time
	// before may fail a whole call.
	before func(ctx context.Context, items []Item) error
	// each may fail, panic over or mark one item.
	each func(it Item) (*event.Status, error)
}

func (p *script) Process(ctx context.Context, items []Item) ([]event.Status, error) {
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

// rig is an intake over a journal in the test's directory.
type rig struct {
	*Intake
	t        *testing.T
	dir      string
	log      *journal.Log
	statuses *memoryStatuses
	p        *script
	keys     func(*Item) uint64 // makes the processor an orderly one
}

func newRig(t *testing.T, o Options) *rig {
	t.Helper()
	r := &rig{t: t, dir: t.TempDir(), statuses: &memoryStatuses{statuses: map[uint64]event.Status{}}, p: &script{seen: map[uint64]int{}}}
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
	var p Processor = r.p
	if r.keys != nil {
		p = orderly{r.p, r.keys}
	}
	if r.Intake, err = New(event.Uplink, "n1", r.log, r.statuses, p, o); err != nil {
		r.t.Fatal(err)
	}
}

// accept writes n entries, whose bodies say their number.
func (r *rig) accept(n int) {
	r.t.Helper()
	for k := range n {
		e := Entry{Account: 7, Source: "generic", Path: "/webhooks/generic/tank%20" + fmt.Sprint(k), Body: fmt.Appendf(nil, `{"n":%d}`, k)}
		if _, err := r.Accept(r.t.Context(), &e); err != nil {
			r.t.Fatal(err)
		}
	}
}

// run processes until the returned function is called, or the test ends.
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
