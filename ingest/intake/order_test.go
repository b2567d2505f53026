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

// newOrderly returns a rig whose batches have one entry each.
func newOrderly(t *testing.T, workers int, key func(*Item) uint64) *rig {
	t.Helper()
	r := newRig(t, Options{Batch: 1, Workers: workers})
	relaytest.NoError(t, r.log.Close())
	r.p.key = key
	r.open(r.options)
	return r
}

func TestEntriesOfOneKeyEndInTheirOrder(t *testing.T) {
	for name, tc := range map[string]struct {
		key   func(*Item) uint64
		waits bool
	}{
		"of one key":         {func(*Item) uint64 { return 7 }, true},
		"of a key each":      {func(it *Item) uint64 { return it.Seq }, false},
		"whose keys come by": {func(it *Item) uint64 { return it.Seq % 2 }, false},
	} {
		t.Run(name, func(t *testing.T) {
			r := newOrderly(t, 2, tc.key)
			release := make(chan struct{})
			var second atomic.Bool
			r.p.set(func(ctx context.Context, items []Item) error {
				if items[0].Seq == 1 {
					<-release
				} else {
					second.Store(true)
				}
				return nil
			}, nil)
			r.accept(2)
			r.run()
			if tc.waits {
				r.await("the second is taken", func() bool { return r.Status().Journal.Last == 2 })
				close(release)
				r.settled()
				if !slices.Equal(r.p.order, []uint64{1, 2}) {
					t.Errorf("processed in the order %v, want [1 2]", r.p.order)
				}
				return
			}
			r.await("the second does not wait", second.Load)
			close(release)
			r.settled()
		})
	}
}

func TestAPanicOfParseIsLogged(t *testing.T) {
	r := newOrderly(t, 2, func(*Item) uint64 { panic("a key without a lock") })
	relaytest.NoError(t, r.log.Close())
	var log bytes.Buffer
	r.options.Logger = slog.New(slog.NewTextHandler(&log, nil))
	r.open(r.options)
	r.accept(1)
	stop := r.run()
	r.settled()
	stop()
	relaytest.Equal(t, "how often the entry was processed", r.p.ended(1), 0)
	relaytest.Equal(t, "the reasons", r.statuses.reasons(), map[uint64]string{1: "quarantined: internal error: a key without a lock"})
	if !strings.Contains(log.String(), "a key without a lock") {
		t.Errorf("the log is %q, want the panic", log.String())
	}
}

// The processing of the first of two entries with one key is delayed until the second would
// have ended if it did not wait.
func TestTheOrderOfAKeyHoldsUnderLoad(t *testing.T) {
	const n = 300
	r := newOrderly(t, 4, func(it *Item) uint64 { return it.Seq % 3 })
	var mu sync.Mutex
	last := map[uint64]uint64{}
	r.p.set(nil, func(it Item) (*event.Status, error) {
		mu.Lock()
		defer mu.Unlock()
		if last[it.Seq%3] > it.Seq {
			t.Errorf("%d came after %d", it.Seq, last[it.Seq%3])
		}
		last[it.Seq%3] = it.Seq
		return nil, nil
	})
	r.accept(n)
	r.run()
	r.settled()
	s := r.Status()
	relaytest.Equal(t, "the number of entries processed", s.Processed, n)
	relaytest.Equal(t, "the number of entries quarantined", s.Quarantined, 0)
}

func TestAnEarlyVerdictIsGivenAgainAfterTheEntriesBefore(t *testing.T) {
	r := newRig(t, Options{Batch: 1, Workers: 2})
	release := make(chan struct{})
	var known atomic.Bool
	var processed atomic.Int32
	r.p.set(func(_ context.Context, items []Item) error {
		if items[0].Seq == 1 {
			<-release
			known.Store(true)
		}
		return nil
	}, func(it Item) (*event.Status, error) {
		if it.Seq == 1 || known.Load() && it.Seq != 4 {
			return nil, nil
		}
		if processed.Add(1) == 1 {
			close(release) // the second was processed before the first ended
		}
		return &event.Status{ID: it.ID, Seq: it.Seq, State: event.Quarantined, Reason: "nobody", Provisional: true}, nil
	})
	r.accept(4)
	r.run()
	r.settled()
	relaytest.Equal(t, "the reasons", r.statuses.reasons(), map[uint64]string{4: "quarantined: nobody"})
	if n := processed.Load(); n < 2 {
		t.Errorf("processed %d times, want at least 2", n)
	}
	s := r.Status()
	relaytest.Equal(t, "the number of entries processed", s.Processed, 4)
	relaytest.Equal(t, "the number of entries quarantined", s.Quarantined, 1)
}

func TestAPanicOfParseQuarantinesItsEntryOnly(t *testing.T) {
	r := newOrderly(t, 2, func(it *Item) uint64 {
		if it.Seq == 2 {
			panic("poison")
		}
		return 1
	})
	r.accept(5)
	r.run()
	r.settled()
	relaytest.Equal(t, "the number of entries that ended", r.Status().Processed, 5)
	relaytest.Equal(t, "the reasons", r.statuses.reasons(), map[uint64]string{2: "quarantined: internal error: poison"})
	relaytest.Equal(t, "the entries processed", r.p.order, []uint64{1, 3, 4, 5})

	// A replay quarantines it again.
	relaytest.Must(r.Replay(t.Context(), event.Filter{State: event.Quarantined}, false))(t)
	relaytest.Equal(t, "the reasons after a replay", r.statuses.reasons(), map[uint64]string{2: "quarantined: internal error: poison"})
}

func TestAStopEndsEntriesThatWaitForTheirTurn(t *testing.T) {
	r := newOrderly(t, 2, func(*Item) uint64 { return 1 })
	r.p.set(func(ctx context.Context, _ []Item) error { <-ctx.Done(); return ctx.Err() }, nil)
	r.accept(3)
	stop := r.run()
	r.await("the first is at work", func() bool { r.p.mu.Lock(); defer r.p.mu.Unlock(); return r.p.busy > 0 })
	stop()
	if got := r.consumer.Committed(); got != 0 {
		t.Errorf("the checkpoint is at %d", got)
	}
}

// An entry may be processed at the same time as earlier ones, and can wait for them.
func TestAnEntryCanWaitForTheEarlierOnes(t *testing.T) {
	r := newOrderly(t, 2, func(it *Item) uint64 { return it.Seq })
	release, both := make(chan struct{}), make(chan struct{})
	var first atomic.Bool
	r.p.set(func(ctx context.Context, items []Item) error {
		switch wait := items[0].WaitForEarlier; {
		case items[0].Seq == 1:
			if wait != nil {
				t.Error("the first waits")
			}
			<-release
			first.Store(true)
		case wait == nil:
			t.Error("the second does not know the first")
		default:
			close(both)
			relaytest.NoError(t, wait(ctx))
			relaytest.Equal(t, "the first is done", first.Load(), true)
		}
		return nil
	}, nil)
	r.accept(2)
	r.run()
	<-both
	close(release)
	r.settled()
}
