package intake

import (
	"context"
	"slices"

	"github.com/penstock/penstock/relay"
	"github.com/penstock/penstock/relay/event"
)

// unfinished returns the batches that have not ended.
func unfinished(batches []*batch) []*batch {
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

// setKeys publishes the keys of a batch.
func (b *batch) setKeys(keys []uint64) {
	b.keys = make(map[uint64]struct{}, len(keys))
	for _, k := range keys {
		b.keys[k] = struct{}{}
	}
	close(b.keyed)
}

// waitForKeys waits for earlier batches that share one of the keys. A batch waits for earlier
// ones only, so there is no deadlock.
func (b *batch) waitForKeys(ctx context.Context, keys []uint64) {
	for _, e := range b.earlier {
		if relay.Wait(ctx, e.keyed) && e.shares(keys) {
			relay.Wait(ctx, e.ended)
		}
	}
}

func (b *batch) shares(keys []uint64) bool {
	return slices.ContainsFunc(keys, func(k uint64) bool { _, ok := b.keys[k]; return ok })
}

// setWaitForEarlier has items wait for earlier batches. A batch waits for earlier ones only,
// so there is no deadlock.
func setWaitForEarlier(items []Item, earlier []*batch) {
	if len(earlier) == 0 {
		return
	}
	waitForEarlier := func(ctx context.Context) error { return waitAll(ctx, earlier) }
	for n := range items {
		items[n].WaitForEarlier = waitForEarlier
	}
}

// waitAll waits until batches have ended; the error is that of ctx.
func waitAll(ctx context.Context, batches []*batch) error {
	for _, b := range batches {
		if !relay.Wait(ctx, b.ended) {
			return ctx.Err()
		}
	}
	return nil
}

// splitProvisional returns the items with a Provisional status, which are processed again, and the
// others with their statuses.
func splitProvisional(items []Item, statuses []event.Status) (provisional, final []Item, finalStatuses []event.Status) {
	if !slices.ContainsFunc(statuses, func(m event.Status) bool { return m.Provisional }) {
		return nil, items, statuses // nearly always: nothing is copied
	}
	isProvisional := make(map[uint64]bool)
	for _, m := range statuses {
		if m.Provisional {
			isProvisional[m.Seq] = true
		} else {
			finalStatuses = append(finalStatuses, m)
		}
	}
	for _, it := range items {
		if isProvisional[it.Seq] {
			provisional = append(provisional, it)
		} else {
			final = append(final, it)
		}
	}
	return provisional, final, finalStatuses
}

// completeFinal completes the items with a final status. Items with a Provisional status
// are processed once more after the earlier batches have ended, if any had not.
func (i *Intake) completeFinal(ctx context.Context, earlier []*batch, items []Item, statuses []event.Status) error {
	provisional, final, finalStatuses := splitProvisional(items, statuses)
	if len(earlier) == 0 || len(provisional) == 0 {
		return i.complete(ctx, items, statuses)
	}
	if err := i.complete(ctx, final, finalStatuses); err != nil {
		return err
	}
	if err := waitAll(ctx, earlier); err != nil {
		return err
	}
	return i.processAll(ctx, nil, provisional)
}
