package intake

import (
	"context"
	"strings"
	"testing"
	"time"

	"github.com/penstock/penstock/ingest/journal"
	"github.com/penstock/penstock/relay/event"
	"github.com/penstock/penstock/relay/relaytest"
)

// severalObjects is a post whose decoded values take more than a third of the memory of a batch.
var severalObjects = []byte("[" + strings.Repeat(`{"a":1},`, maxBatchWeight/(3*350)) + "{}]")

// acceptLarge accepts n large entries of account 7.
func (r *rig) acceptLarge(n int) {
	r.t.Helper()
	for range n {
		if _, err := r.Accept(r.t.Context(), &Entry{Account: 7, Source: "generic", Body: severalObjects}); err != nil {
			r.t.Fatal(err)
		}
	}
}

// boundCalls fails the test if a call of the processor exceeds the weight of a batch.
func (r *rig) boundCalls() {
	r.p.set(func(_ context.Context, items []Item) error {
		sum := 0
		for _, it := range items {
			sum += weight(it.Entry.Body)
		}
		if len(items) > 1 && sum > maxBatchWeight {
			r.t.Errorf("%d entries of weight %d are processed at once, want at most %d", len(items), sum, maxBatchWeight)
		}
		return nil
	}, nil)
}

func TestLargeEntriesMakeSmallBatches(t *testing.T) {
	r := newRig(t, Options{})
	r.boundCalls()
	r.acceptLarge(12)
	r.run()
	r.settled()
	relaytest.Equal(t, "the number of entries processed", len(r.p.order), 12)
}

func TestLargeEntriesAreReplayedInSmallBatches(t *testing.T) {
	r := newRig(t, Options{})
	r.acceptLarge(12)
	r.run()
	r.settled()
	r.boundCalls()
	n, err := r.Reprocess(t.Context(), 1)
	relaytest.NoError(t, err)
	relaytest.Equal(t, "the number of entries replayed", n, 12)
	seen := 0
	total, _, err := r.Batches(t.Context(), event.Filter{}, time.Time{}, 100, func(s Selection) error {
		seen += len(s.Items)
		return r.p.before(t.Context(), s.Items)
	})
	relaytest.NoError(t, err)
	relaytest.Equal(t, "the numbers of events selected and passed", []int{total, seen}, []int{12, 12})
}

func TestLargeDeferredEntriesAreProcessedInSmallBatches(t *testing.T) {
	r := newRig(t, Options{})
	r.busyWith(7)
	each := r.p.each
	r.boundCalls()
	r.p.set(r.p.before, each)
	r.acceptLarge(12)
	r.run()
	r.settled()
	r.await("what was deferred is processed", func() bool { return len(r.statuses.reasons()) == 0 })
}

func TestAnEntryBeyondTheWeightIsABatch(t *testing.T) {
	huge := []byte(strings.Repeat("{", maxBatchWeight/350+1))
	count, _ := nextBatch([]journal.Record{{Payload: huge}, {Payload: huge}})
	relaytest.Equal(t, "the number of entries", count, 1)
}
