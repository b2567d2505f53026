package intake

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/penstock/penstock/ingest/journal"
	"github.com/penstock/penstock/relay"
	"github.com/penstock/penstock/relay/event"
)

// The limits of the exponential backoff while a back end is down.
const (
	minBackoff = 50 * time.Millisecond
	maxBackoff = 2 * time.Second
)

// The batch sizes from which the load counts as busy and as heavy.
const (
	busyBatch  = 64
	heavyBatch = 500
)

// batch is a sequence of records that are processed together.
type batch struct {
	lastSeq       uint64
	size          int
	memory        int64  // acquired from Intake.memory
	arrived       uint64 // entries accepted since the previous batch was read
	ended         chan struct{}
	duration      time.Duration       // valid once ended is closed
	err           error               // valid once ended is closed; nil when every effect is durable
	earlier       []*batch            // the batches that had not ended when this one was read
	accountsAdded chan struct{}       // closed once deferLarge has recorded the accounts of the entries
	keysReady     chan struct{}       // closed once keys is set
	keys          map[uint64]struct{} // valid once keysReady is closed
}

// Run processes the journal until ctx is done. Several batches are processed
// concurrently; the checkpoint follows them in order. Run starts at the checkpoint:
// records that an earlier call read but did not commit are read again.
func (i *Intake) Run(ctx context.Context) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	i.consumer.Rewind()
	i.lastSeqAtStart.Store(i.log.Stats().Last)
	// At most Workers batches run: commit holds one until it has ended.
	started := make(chan *batch, i.options.Workers-1)
	ended := make(chan error, 1)
	go func() { ended <- i.commit(started, cancel) }()
	var deferring sync.WaitGroup
	deferring.Go(func() { i.processDeferred(ctx) })
	err := i.dispatch(ctx, started)
	close(started)
	err = errors.Join(err, <-ended)
	cancel()
	deferring.Wait()
	return err
}

// dispatch reads batches and starts a worker for each.
//
// Acceptance has priority. Senders time out after seconds and most do not retry,
// while a reading may be stored a second later. So entries accumulate under load
// before a batch is read, and after a large batch processing pauses for as long as
// the batch took, unless the backlog exceeds its limit.
func (i *Intake) dispatch(ctx context.Context, started chan<- *batch) error {
	var newest *batch
	var open []*batch
	var records []journal.Record // read, and not in a batch yet
	for accepted := i.accepted.Load(); i.throttle(ctx, newest); {
		if len(records) == 0 {
			var err error
			if records, err = i.consumer.Next(ctx, i.options.Batch); err != nil {
				if stopping(ctx, err) {
					return nil
				}
				return fmt.Errorf("intake %s: read: %w", i.kind, err)
			}
		}
		size, sum := nextBatch(records)
		memory := int64(min(sum, maxWeight))
		if err := i.memory.Acquire(ctx, memory); err != nil {
			if stopping(ctx, err) {
				return nil
			}
			return fmt.Errorf("intake %s: memory: %w", i.kind, err)
		}
		now := i.accepted.Load()
		newest = &batch{
			lastSeq: records[size-1].Seq, size: size, arrived: now - accepted, memory: memory,
			accountsAdded: make(chan struct{}), keysReady: make(chan struct{}), ended: make(chan struct{}),
		}
		accepted = now
		started <- newest // blocks while all workers are busy
		newest.earlier = unfinished(open)
		open = append(slices.Clip(newest.earlier), newest)
		go i.processBatch(ctx, newest, slices.Clone(records[:size]))
		records = records[size:]
	}
	return nil
}

// processBatch processes a batch, and then releases its memory. It waits for earlier batches only,
// so there is no deadlock: for their accounts (deferLarge), for the ends of those with a common key,
// and for all ends before a Provisional status is final or rules evaluate (WaitForEarlier).
func (i *Intake) processBatch(ctx context.Context, b *batch, records []journal.Record) {
	defer i.memory.Release(b.memory)
	start := time.Now()
	items, unsaved := i.decodeItems(ctx, records)
	// deferLarge compares each entry with earlier entries, including those of earlier batches.
	for _, e := range b.earlier {
		relay.Wait(ctx, e.accountsAdded)
	}
	items, deferred, statuses := i.deferLarge(items)
	close(b.accountsAdded)
	if len(deferred) > 0 {
		unsaved = errors.Join(unsaved, i.complete(ctx, deferred, statuses))
	}
	if earlier := b.earlier; len(earlier) > 0 {
		waitForEarlier := func(ctx context.Context) error { return waitAll(ctx, earlier) }
		for n := range items {
			items[n].WaitForEarlier = waitForEarlier
		}
	}
	i.beginSpans(items)
	items, keys, invalid, statuses := i.parse(items)
	b.keys = make(map[uint64]struct{}, len(keys))
	for _, k := range keys {
		b.keys[k] = struct{}{}
	}
	close(b.keysReady)
	if len(invalid) > 0 {
		unsaved = errors.Join(unsaved, i.complete(ctx, invalid, statuses))
	}
	// Wait for the earlier batches that have one of the keys.
	for _, e := range b.earlier {
		shared := func(k uint64) bool { _, ok := e.keys[k]; return ok }
		if relay.Wait(ctx, e.keysReady) && slices.ContainsFunc(keys, shared) {
			relay.Wait(ctx, e.ended)
		}
	}
	b.err = errors.Join(unsaved, i.processAll(ctx, b.earlier, items))
	b.duration = time.Since(start)
	b.earlier = nil // otherwise each batch would keep all earlier ones in memory
	close(b.ended)
}

// throttle delays the next batch under load. It returns false when ctx is done.
func (i *Intake) throttle(ctx context.Context, newest *batch) bool {
	switch {
	case newest == nil || newest.size <= busyBatch || i.options.Linger < 0:
		return ctx.Err() == nil
	case newest.arrived < uint64(newest.size)/4:
		return ctx.Err() == nil // few new entries are arriving
	case newest.size < heavyBatch:
		return relay.Sleep(ctx, i.options.Linger)
	case i.log.Stats().Last-newest.lastSeq > i.options.Backlog:
		return ctx.Err() == nil
	}
	select {
	case <-newest.ended:
		return relay.Sleep(ctx, max(newest.duration, i.options.Linger))
	case <-ctx.Done():
		return false
	}
}

// commit advances the checkpoint after each batch. After a failed batch, commit stops
// dispatch and waits until the remaining batches have ended.
func (i *Intake) commit(started <-chan *batch, stop func()) error {
	var firstErr error
	for b := range started {
		<-b.ended
		err := b.err
		if firstErr == nil && err == nil {
			err = i.consumer.Commit(b.lastSeq)
		}
		if firstErr == nil && err != nil && !errors.Is(err, context.Canceled) {
			i.logger.Error("checkpoint not advanced", "error", err)
		}
		if firstErr == nil && err != nil {
			firstErr = err
			stop()
		}
	}
	if errors.Is(firstErr, context.Canceled) {
		return nil
	}
	return firstErr
}

// decodeItems decodes records and quarantines those that cannot be decoded. It fails only
// if ctx is done.
func (i *Intake) decodeItems(ctx context.Context, records []journal.Record) (items []Item, err error) {
	items = make([]Item, 0, len(records))
	previous := &Entry{}
	for _, r := range records {
		item, parseErr := i.itemAfter(r, previous)
		if parseErr != nil {
			err = errors.Join(err, i.complete(ctx, []Item{item}, []event.Status{quarantinedStatus(item, parseErr)}))
			continue
		}
		items = append(items, item)
		previous = &items[len(items)-1].Entry
	}
	return items, err
}

// An entry of more than largeWeight is deferred if another account has sent an entry in the
// last contentionTime, because the entries of the other account would wait for the large one.
// Accounts take turns when deferred entries are processed.
const (
	largeWeight    = 1 << 20
	contentionTime = 10 * time.Second
	largeReason    = "the post is large and other accounts send too"
)

// recentSenders records the last entry of each of the two accounts that sent most recently.
type recentSenders struct {
	mu     sync.Mutex
	recent [2]senderEntry // newest first
}

// senderEntry is the time at which the last entry of an account was received.
type senderEntry struct {
	account relay.AccountID
	t       time.Time
}

// add records an entry of an account, and reports whether another account has sent an entry
// in the last contentionTime.
func (s *recentSenders) add(acct relay.AccountID, receivedAt time.Time) (contended bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.recent[0].account != acct {
		s.recent[1] = s.recent[0]
	}
	s.recent[0] = senderEntry{acct, receivedAt}
	return receivedAt.Sub(s.recent[1].t).Abs() < contentionTime // the clock may have been set back
}

// deferLarge returns the items to process now, and the large items to defer with their statuses.
func (i *Intake) deferLarge(items []Item) (immediate, deferred []Item, statuses []event.Status) {
	immediate = items[:0]
	for n := range items {
		item := items[n]
		contended := i.recentSenders.add(item.Entry.Account, item.Entry.ReceivedAt)
		if contended && weight(item.Entry.Body) > largeWeight {
			deferred, statuses = append(deferred, item), append(statuses, item.Status(event.Pending, largeReason))
			continue
		}
		immediate = append(immediate, item)
	}
	return immediate, deferred, statuses
}

// The maximum weight of entries that are processed together. An entry above a limit is
// processed alone.
const (
	maxBatchWeight = 12 << 20 // of a batch
	maxWeight      = 24 << 20 // of all batches that Run processes concurrently
)

// weight estimates the memory in bytes that processing an entry takes. A decoded value
// takes many times the memory of its JSON: the object {"a":1} takes about 350 bytes.
func weight(payload []byte) int {
	const object, value = 350, 64
	return len(payload) + object*bytes.Count(payload, []byte("{")) + value*bytes.Count(payload, []byte(","))
}

// nextBatch returns the number of records in the next batch, at least 1, and their weight.
func nextBatch(records []journal.Record) (count, sum int) {
	for _, r := range records {
		w := weight(r.Payload)
		if count > 0 && sum+w > maxBatchWeight {
			break
		}
		count, sum = count+1, sum+w
	}
	return count, sum
}
