package intake

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/penstock/penstock/ingest/journal"
	"github.com/penstock/penstock/relay/event"
)

// How long the consumer waits before it tries a back end again.
const (
	firstPause = 50 * time.Millisecond
	longPause  = 2 * time.Second
)

// The sizes of a batch that show load, and heavy load.
const (
	busy    = 8
	crowded = 500
)

// batch is a run of records in the works.
type batch struct {
	last    uint64
	size    int
	arrived uint64        // entries accepted since the batch before it was taken
	took    time.Duration // valid once ended is closed
	ended   chan struct{}
	done    chan error // one answer: nil when every effect is durable
	turn
	keys  map[uint64]struct{} // valid once keyed is closed
	keyed chan struct{}
}

// Run processes the journal until ctx is done. Several batches are in the works
// at once; the checkpoint follows them in order. It begins at the checkpoint,
// also when it is called again after an error: what was read and not committed
// is read again.
func (i *Intake) Run(ctx context.Context) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	i.consumer.Rewind()
	line := make(chan *batch, i.options.Workers-1)
	ended := make(chan error, 1)
	go func() { ended <- i.commit(line, cancel) }()
	err := i.feed(ctx, line)
	close(line)
	return errors.Join(err, <-ended)
}

// feed reads batches and starts the work on each.
//
// Acceptance goes first. Senders cut off after seconds and most never come
// again, while nobody sees a reading arrive a second later: under load entries
// gather before they are taken, and after a large batch processing stands back
// for as long as the batch took, unless the backlog has grown too long for that.
func (i *Intake) feed(ctx context.Context, line chan<- *batch) error {
	var last *batch
	var open []*batch
	for accepted := i.accepted.Load(); i.yield(ctx, last); {
		records, err := i.consumer.Next(ctx, i.options.Batch)
		if err != nil {
			if gone(ctx, err) {
				return nil
			}
			return fmt.Errorf("intake %s: read: %w", i.kind, err)
		}
		now := i.accepted.Load()
		last = &batch{
			last: records[len(records)-1].Seq, size: len(records), arrived: now - accepted,
			done: make(chan error, 1), ended: make(chan struct{}), keyed: make(chan struct{}),
		}
		accepted = now
		line <- last // waits while as many are in the works as may be
		last.turn = turn{inTheWorks(open)}
		open = append(slices.Clip(last.earlier), last)
		go i.work(ctx, last, records)
	}
	return nil
}

// work brings a batch to its end.
func (i *Intake) work(ctx context.Context, b *batch, records []journal.Record) {
	start := time.Now()
	items := i.items(ctx, records)
	i.lineUp(ctx, b, items)
	err := i.settle(ctx, b.turn, items)
	b.took = time.Since(start)
	b.turn = turn{} // or each batch would keep all those before it in memory
	close(b.ended)
	b.done <- err
}

// yield waits before the next batch is taken, as the load asks for. It is false
// when ctx is done.
func (i *Intake) yield(ctx context.Context, last *batch) bool {
	switch {
	case last == nil || last.size <= busy || i.options.Linger < 0:
		return ctx.Err() == nil
	case last.arrived < uint64(last.size)/4:
		return ctx.Err() == nil // nobody to give way to
	case last.size < crowded:
		return sleep(ctx, i.options.Linger) == nil
	case i.log.Stats().Last-last.last > i.options.Backlog:
		return ctx.Err() == nil
	}
	select {
	case <-last.ended:
		return sleep(ctx, max(last.took, i.options.Linger)) == nil
	case <-ctx.Done():
		return false
	}
}

// commit moves the checkpoint behind each batch that is done. After one that is
// not, it stops the feed and only waits for the others to end.
func (i *Intake) commit(line <-chan *batch, stop func()) error {
	var failed error
	for b := range line {
		err := <-b.done
		if failed == nil && err == nil {
			err = i.consumer.Commit(b.last)
		}
		if failed == nil && err != nil && !errors.Is(err, context.Canceled) {
			i.logger.Error("the checkpoint stays where it is", "error", err)
		}
		if failed == nil && err != nil {
			failed = err
			stop()
		}
	}
	if errors.Is(failed, context.Canceled) {
		return nil
	}
	return failed
}

// items reads records and sets those aside that cannot be read.
func (i *Intake) items(ctx context.Context, records []journal.Record) []Item {
	items := make([]Item, 0, len(records))
	for _, r := range records {
		it, err := i.item(r)
		if err != nil {
			_ = i.end(ctx, 1, []event.Mark{setAside(it, err)}) // fails with ctx only
			continue
		}
		items = append(items, it)
	}
	return items
}
