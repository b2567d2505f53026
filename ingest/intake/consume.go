package intake

import (
	"context"
	"errors"
	"fmt"
	"runtime/debug"
	"time"

	"github.com/penstock/penstock/ingest/journal"
	"github.com/penstock/penstock/relay"
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
}

// Run processes the journal until ctx is done. Several batches are in the works
// at once; the checkpoint follows them in order.
func (i *Intake) Run(ctx context.Context) error {
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	line := make(chan *batch, i.options.Workers-1)
	ended := make(chan error, 1)
	go func() { ended <- i.commit(line); cancel() }()
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
	for accepted := i.accepted.Load(); ; {
		if err := i.yield(ctx, last); err != nil {
			return nil
		}
		records, err := i.consumer.Next(ctx, i.options.Batch)
		if err != nil {
			if gone(ctx, err) {
				return nil
			}
			return fmt.Errorf("intake %s: read: %w", i.kind, err)
		}
		now := i.accepted.Load()
		last = &batch{last: records[len(records)-1].Seq, size: len(records), arrived: now - accepted, done: make(chan error, 1), ended: make(chan struct{})}
		accepted = now
		go i.work(ctx, last, records)
		line <- last
	}
}

// work brings a batch to its end.
func (i *Intake) work(ctx context.Context, b *batch, records []journal.Record) {
	start := time.Now()
	err := i.settle(ctx, i.items(ctx, records))
	b.took = time.Since(start)
	close(b.ended)
	b.done <- err
}

// yield waits before the next batch is taken, as the load asks for.
func (i *Intake) yield(ctx context.Context, last *batch) error {
	switch {
	case last == nil || last.size <= busy || i.options.Linger < 0:
		return nil
	case last.arrived < uint64(last.size)/4:
		return nil // nobody to give way to
	case last.size < crowded:
		return sleep(ctx, i.options.Linger)
	case i.log.Stats().Last-last.last > i.options.Backlog:
		return nil
	}
	select {
	case <-last.ended:
		return sleep(ctx, max(last.took, i.options.Linger))
	case <-ctx.Done():
		return ctx.Err()
	}
}

// commit moves the checkpoint behind each batch that is done. After one that is
// not, it only waits for the others to end.
func (i *Intake) commit(line <-chan *batch) error {
	var failed error
	for b := range line {
		err := <-b.done
		if failed == nil && err == nil {
			err = i.consumer.Commit(b.last)
		}
		if failed == nil && err != nil && !errors.Is(err, context.Canceled) {
			i.logger.Error("the checkpoint stays where it is", "error", err)
		}
		if failed == nil {
			failed = err
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
			_ = i.mark(ctx, []event.Mark{setAside(it, err)}) // ends with ctx only
			continue
		}
		items = append(items, it)
	}
	return items
}

// settle brings items to an end: processed, or set aside. It returns an error
// only when ctx is done.
func (i *Intake) settle(ctx context.Context, items []Item) error {
	if len(items) == 0 {
		return ctx.Err()
	}
	pause := firstPause
	for try := 1; ; try++ {
		marks, err := i.process(ctx, items)
		switch {
		case err == nil:
			if err := i.mark(ctx, marks); err != nil {
				return err
			}
			i.processed.Add(uint64(len(items)))
			i.trouble.Store(nil)
			return nil
		case ctx.Err() != nil:
			return ctx.Err()
		case relay.KindOf(err) == relay.KindUnavailable:
		case len(items) > 1:
			return i.settleApart(ctx, items)
		case try >= i.options.Patience:
			i.logger.Error("entry set aside", "event", items[0].ID, "error", err)
			return i.mark(ctx, []event.Mark{setAside(items[0], err)})
		}
		i.waits(err)
		if err := sleep(ctx, max(pause, retryAfter(err))); err != nil {
			return err
		}
		pause = min(2*pause, longPause)
	}
}

// settleApart halves a batch until the item that fails stands alone.
func (i *Intake) settleApart(ctx context.Context, items []Item) error {
	half := len(items) / 2
	if err := i.settle(ctx, items[:half]); err != nil {
		return err
	}
	return i.settle(ctx, items[half:])
}

// process calls the processor and turns a panic into an error.
func (i *Intake) process(ctx context.Context, items []Item) (marks []event.Mark, err error) {
	defer func() {
		if p := recover(); p != nil {
			i.logger.Error("processor panicked", "panic", fmt.Sprint(p), "stack", string(debug.Stack()))
			err = fmt.Errorf("internal error: %v", p)
		}
	}()
	return i.processor.Process(ctx, items)
}

// mark records marks, however long that takes.
func (i *Intake) mark(ctx context.Context, marks []event.Mark) error {
	if len(marks) == 0 {
		return nil
	}
	for pause := firstPause; ; pause = min(2*pause, longPause) {
		err := i.marks.Set(ctx, i.kind, marks)
		if err == nil {
			i.setAside.Add(uint64(len(marks)))
			return nil
		}
		i.waits(err)
		if err := sleep(ctx, pause); err != nil {
			return err
		}
	}
}

// waits remembers why nothing moves and says so once.
func (i *Intake) waits(err error) {
	if i.trouble.Swap(&err) == nil {
		i.logger.Warn("processing waits for a back end", "error", err)
	}
}

func setAside(it Item, err error) event.Mark {
	return event.Mark{
		ID: it.ID, Seq: it.Seq, State: event.Quarantined, Reason: err.Error(),
		Account: it.Entry.Account, Source: it.Entry.Source,
	}
}

// retryAfter is how long a back end asked to be left alone.
func retryAfter(err error) time.Duration {
	if e, ok := errors.AsType[interface {
		error
		RetryAfter() time.Duration
	}](err); ok {
		return min(e.RetryAfter(), time.Minute)
	}
	return 0
}

func sleep(ctx context.Context, d time.Duration) error {
	t := time.NewTimer(d)
	defer t.Stop()
	select {
	case <-ctx.Done():
		return ctx.Err()
	case <-t.C:
		return nil
	}
}
