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

// manyObjects is a JSON array with more than a third of the maximum weight of a batch.
var manyObjects = []byte("[" + strings.Repeat(`{"a":1},`, maxBatchWeight/(3*350)) + "{}]")

// acceptLarge accepts n large entries of account 7.
func (r *rig) acceptLarge(n int) {
	r.t.Helper()
	for range n {
		if _, err := r.Accept(r.t.Context(), &Entry{Account: 7, Source: "generic", Body: manyObjects}); err != nil {
			r.t.Fatal(err)
		}
	}
}

// checkBatchWeight fails the test if a call of the processor exceeds the maximum weight.
func (r *rig) checkBatchWeight() {
	r.p.setHooks(func(_ context.Context, items []Item) error {
		sum := 0
		for _, item := range items {
			sum += weight(item.Entry.Body)
		}
		if len(items) > 1 && sum > maxBatchWeight {
			r.t.Errorf("weight of a call with %d entries = %d, want at most %d", len(items), sum, maxBatchWeight)
		}
		return nil
	}, nil)
}

func TestLargeEntriesAreProcessedInSmallBatches(t *testing.T) {
	r := newRig(t, Options{})
	r.checkBatchWeight()
	r.acceptLarge(12)
	r.run()
	r.waitProcessed()
	relaytest.Equal(t, "the number of processed entries", len(r.p.order), 12)
}

func TestLargeEntriesAreReplayedInSmallBatches(t *testing.T) {
	r := newRig(t, Options{})
	r.acceptLarge(12)
	r.run()
	r.waitProcessed()
	r.checkBatchWeight()
	n, err := r.Reprocess(t.Context(), 1)
	relaytest.NoError(t, err)
	relaytest.Equal(t, "the number of reprocessed entries", n, 12)
	passed := 0
	total, _, err := r.Batches(t.Context(), event.Filter{}, time.Time{}, 100, func(s Selection) error {
		passed += len(s.Items)
		return r.p.onCall(t.Context(), s.Items)
	})
	relaytest.NoError(t, err)
	relaytest.Equal(t, "the numbers of selected and passed events", []int{total, passed}, []int{12, 12})
}

func TestLargeDeferredEntriesAreProcessedInSmallBatches(t *testing.T) {
	r := newRig(t, Options{})
	r.deferEntriesOf(7)
	deferItem := r.p.onItem
	r.checkBatchWeight()
	r.p.setHooks(r.p.onCall, deferItem)
	r.acceptLarge(12)
	r.run()
	r.waitProcessed()
	r.await("deferred entries are processed", func() bool { return len(r.statuses.reasons()) == 0 })
}

func TestAnEntryAboveTheMaximumWeightIsABatch(t *testing.T) {
	huge := []byte(strings.Repeat("{", maxBatchWeight/350+1))
	count, _ := nextBatch([]journal.Record{{Payload: huge}, {Payload: huge}})
	relaytest.Equal(t, "the number of entries in the batch", count, 1)
}
