package intake

import (
	"bytes"
	"context"
	"log/slog"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/penstock/penstock/relay/event"
	"github.com/penstock/penstock/relay/relaytest"
)

// newKeyedRig returns a rig with batches of one entry and a key for each entry.
func newKeyedRig(t *testing.T, workers int, key func(*Item) uint64) *rig {
	t.Helper()
	r := newRig(t, Options{Batch: 1, Workers: workers})
	relaytest.NoError(t, r.log.Close())
	r.p.key = key
	r.open(r.options)
	return r
}

func TestEntriesWithACommonKeyAreProcessedInOrder(t *testing.T) {
	for name, tc := range map[string]struct {
		key   func(*Item) uint64
		waits bool
	}{
		"a common key":     {func(*Item) uint64 { return 7 }, true},
		"different keys":   {func(item *Item) uint64 { return item.Seq }, false},
		"alternating keys": {func(item *Item) uint64 { return item.Seq % 2 }, false},
	} {
		t.Run(name, func(t *testing.T) {
			r := newKeyedRig(t, 2, tc.key)
			release := make(chan struct{})
			var secondCalled atomic.Bool
			r.p.setHooks(func(ctx context.Context, items []Item) error {
				if items[0].Seq == 1 {
					<-release
				} else {
					secondCalled.Store(true)
				}
				return nil
			}, nil)
			r.accept(2)
			r.run()
			if tc.waits {
				r.await("entry 2 is in the journal", func() bool { return r.Status().Journal.Last == 2 })
				close(release)
				r.waitProcessed()
				if !slices.Equal(r.p.order, []uint64{1, 2}) {
					t.Errorf("order = %v, want [1 2]", r.p.order)
				}
				return
			}
			r.await("entry 2 does not wait", secondCalled.Load)
			close(release)
			r.waitProcessed()
		})
	}
}

func TestAPanicInParseIsLogged(t *testing.T) {
	r := newKeyedRig(t, 2, func(*Item) uint64 { panic("poison") })
	relaytest.NoError(t, r.log.Close())
	var log bytes.Buffer
	r.options.Logger = slog.New(slog.NewTextHandler(&log, nil))
	r.open(r.options)
	r.accept(1)
	stop := r.run()
	r.waitProcessed()
	stop()
	relaytest.Equal(t, "the number of times the entry was processed", r.p.processedCount(1), 0)
	relaytest.Equal(t, "the reasons", r.statuses.reasons(), map[uint64]string{1: "quarantined: internal error: poison"})
	if !strings.Contains(log.String(), "poison") {
		t.Errorf("log = %q, want the panic", log.String())
	}
}

func TestEntriesWithACommonKeyAreProcessedInOrderUnderLoad(t *testing.T) {
	const n = 300
	r := newKeyedRig(t, 4, func(item *Item) uint64 { return item.Seq % 3 })
	var mu sync.Mutex
	lastSeqs := map[uint64]uint64{} // by key
	r.p.setHooks(nil, func(item Item) (*event.Status, error) {
		mu.Lock()
		defer mu.Unlock()
		if lastSeqs[item.Seq%3] > item.Seq {
			t.Errorf("entry %d was processed after entry %d", item.Seq, lastSeqs[item.Seq%3])
		}
		lastSeqs[item.Seq%3] = item.Seq
		return nil, nil
	})
	r.accept(n)
	r.run()
	r.waitProcessed()
	s := r.Status()
	relaytest.Equal(t, "the number of processed entries", s.Processed, n)
	relaytest.Equal(t, "the number of quarantined entries", s.Quarantined, 0)
}

func TestAProvisionalStatusIsReplacedAfterEarlierEntries(t *testing.T) {
	r := newRig(t, Options{Batch: 1, Workers: 2})
	release := make(chan struct{})
	var firstEnded atomic.Bool
	var provisional atomic.Int32
	r.p.setHooks(func(_ context.Context, items []Item) error {
		if items[0].Seq == 1 {
			<-release
			firstEnded.Store(true)
		}
		return nil
	}, func(item Item) (*event.Status, error) {
		if item.Seq == 1 || firstEnded.Load() && item.Seq != 4 {
			return nil, nil
		}
		if provisional.Add(1) == 1 {
			close(release) // a later entry has a status before the first ended
		}
		return &event.Status{ID: item.ID, Seq: item.Seq, State: event.Quarantined, Reason: "nobody", Provisional: true}, nil
	})
	r.accept(4)
	r.run()
	r.waitProcessed()
	relaytest.Equal(t, "the reasons", r.statuses.reasons(), map[uint64]string{4: "quarantined: nobody"})
	if n := provisional.Load(); n < 2 {
		t.Errorf("provisional statuses = %d, want at least 2", n)
	}
	s := r.Status()
	relaytest.Equal(t, "the number of processed entries", s.Processed, 4)
	relaytest.Equal(t, "the number of quarantined entries", s.Quarantined, 1)
}

func TestAPanicInParseQuarantinesItsEntryOnly(t *testing.T) {
	r := newKeyedRig(t, 2, func(item *Item) uint64 {
		if item.Seq == 2 {
			panic("poison")
		}
		return 1
	})
	r.accept(5)
	r.run()
	r.waitProcessed()
	relaytest.Equal(t, "the number of processed and quarantined entries", r.Status().Processed, 5)
	relaytest.Equal(t, "the reasons", r.statuses.reasons(), map[uint64]string{2: "quarantined: internal error: poison"})
	relaytest.Equal(t, "the processed entries", r.p.order, []uint64{1, 3, 4, 5})

	relaytest.Must(r.Replay(t.Context(), event.Filter{State: event.Quarantined}, false))(t)
	relaytest.Equal(t, "the reasons after a replay", r.statuses.reasons(), map[uint64]string{2: "quarantined: internal error: poison"})
}

func TestAStopEndsTheWaitForACommonKey(t *testing.T) {
	r := newKeyedRig(t, 2, func(*Item) uint64 { return 1 })
	r.p.setHooks(func(ctx context.Context, _ []Item) error { <-ctx.Done(); return ctx.Err() }, nil)
	r.accept(3)
	stop := r.run()
	r.await("entry 1 is being processed", func() bool { r.p.mu.Lock(); defer r.p.mu.Unlock(); return r.p.running > 0 })
	stop()
	if got := r.consumer.Committed(); got != 0 {
		t.Errorf("checkpoint = %d, want 0", got)
	}
}

func TestWaitForEarlierWaitsForEarlierBatches(t *testing.T) {
	r := newKeyedRig(t, 2, func(item *Item) uint64 { return item.Seq })
	release, bothRunning := make(chan struct{}), make(chan struct{})
	var firstEnded atomic.Bool
	r.p.setHooks(func(ctx context.Context, items []Item) error {
		switch wait := items[0].WaitForEarlier; {
		case items[0].Seq == 1:
			if wait != nil {
				t.Error("entry 1 has earlier batches, want none")
			}
			<-release
			firstEnded.Store(true)
		case wait == nil:
			t.Error("entry 2 has no earlier batches, want one")
		default:
			close(bothRunning)
			relaytest.NoError(t, wait(ctx))
			relaytest.Equal(t, "entry 1 has ended", firstEnded.Load(), true)
		}
		return nil
	}, nil)
	r.accept(2)
	r.run()
	<-bothRunning
	close(release)
	r.waitProcessed()
}
