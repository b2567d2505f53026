package intake

import (
	"context"
	"slices"

	"github.com/penstock/penstock/relay/event"
)

// Orderly is a Processor for some of whose entries the order counts although
// several batches are in the works: of two with the same key, the later waits
// until the earlier has ended.
type Orderly interface {
	Processor
	// Keys appends the keys of an entry, as hashes: two entries that differ in
	// theirs are rarely taken for each other, which costs a wait. It may leave in
	// Item.Prepared what Process would have to find out again.
	Keys(it *Item, keys []uint64) []uint64
}

// turn is a batch's place among those in the works.
type turn struct {
	earlier []*batch // in the works when this one was taken
}

// inTheWorks returns those of the batches that have not ended.
func inTheWorks(batches []*batch) []*batch {
	return slices.DeleteFunc(slices.Clone(batches), func(b *batch) bool { return closed(b.ended) })
}

func closed(ch <-chan struct{}) bool {
	select {
	case <-ch:
		return true
	default:
		return false
	}
}

// lineUp names what a batch is about, and waits for the earlier ones that are
// about the same. Each waits only for those before it, so none waits for ever.
func (i *Intake) lineUp(ctx context.Context, b *batch, items []Item) {
	defer func() {
		if !closed(b.keyed) {
			close(b.keyed) // a processor that panics is looked into by settle
		}
		_ = recover()
	}()
	p, ok := i.processor.(Orderly)
	if !ok {
		return
	}
	var keys []uint64
	for n := range items {
		keys = p.Keys(&items[n], keys)
	}
	b.keys = make(map[uint64]struct{}, len(keys))
	for _, k := range keys {
		b.keys[k] = struct{}{}
	}
	close(b.keyed)
	for _, e := range b.earlier {
		if wait(ctx, e.keyed) && e.shares(keys) {
			wait(ctx, e.ended)
		}
	}
}

func (b *batch) shares(keys []uint64) bool {
	return slices.ContainsFunc(keys, func(k uint64) bool { _, ok := b.keys[k]; return ok })
}

// wait is false when ctx is done first.
func wait(ctx context.Context, ch <-chan struct{}) bool {
	select {
	case <-ch:
		return true
	case <-ctx.Done():
		return false
	}
}

// premature returns the items whose marks may be due to an entry that is still
// in the works, and the marks of the others.
func premature(items []Item, marks []event.Mark) (again []Item, final []event.Mark) {
	early := make(map[uint64]bool)
	for _, m := range marks {
		if m.Early {
			early[m.Seq] = true
		} else {
			final = append(final, m)
		}
	}
	for _, it := range items {
		if early[it.Seq] {
			again = append(again, it)
		}
	}
	return again, final
}

// judge ends items whose verdicts stand. Those whose verdict was given while
// earlier batches were in the works, and may be due to that, are processed once
// more when these have ended.
func (i *Intake) judge(ctx context.Context, t turn, items []Item, marks []event.Mark) error {
	again, final := premature(items, marks)
	if len(t.earlier) == 0 || len(again) == 0 {
		return i.end(ctx, len(items), marks)
	}
	if err := i.end(ctx, len(items)-len(again), final); err != nil {
		return err
	}
	for _, b := range t.earlier {
		if !wait(ctx, b.ended) {
			return ctx.Err()
		}
	}
	return i.settle(ctx, turn{}, again)
}
