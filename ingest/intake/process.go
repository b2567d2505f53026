package intake

import (
	"context"
	"errors"
	"fmt"
	"runtime/debug"
	"slices"
	"sort"
	"strings"
	"time"

	"github.com/penstock/penstock/decoders"
	"github.com/penstock/penstock/relay"
	"github.com/penstock/penstock/relay/event"
	"github.com/penstock/penstock/relay/tracing"
)

// processAll processes items until each has a result. It returns an error only when ctx is
// done.
func (i *Intake) processAll(ctx context.Context, earlier []*batch, items []Item) error {
	if len(items) == 0 {
		return ctx.Err()
	}
	failures, backoff := 0, minBackoff
	for {
		running := unfinished(earlier)
		statuses, err := i.process(ctx, items)
		switch {
		case err == nil:
			return i.completeFinal(ctx, running, items, statuses)
		case ctx.Err() != nil:
			return ctx.Err()
		case relay.KindOf(err) == relay.KindUnavailable:
			i.recordOutage(err)
		case len(items) > 1:
			// Bisect the batch until only the failing item is left.
			n := len(items) / 2
			if err := i.processAll(ctx, earlier, items[:n]); err != nil {
				return err
			}
			return i.processAll(ctx, earlier, items[n:])
		default:
			if failures++; failures >= i.options.MaxAttempts {
				return i.complete(ctx, items, []event.Status{quarantinedStatus(items[0], err)})
			}
		}
		if !relay.Sleep(ctx, max(backoff, retryAfter(err))) {
			return ctx.Err()
		}
		backoff = min(2*backoff, maxBackoff)
	}
}

// parse parses items. It returns the parsed items with their keys, and the invalid items
// with their statuses.
func (i *Intake) parse(items []Item) (parsed []Item, keys []uint64, invalid []Item, statuses []event.Status) {
	parsed = items[:0]
	for n := range items {
		item := items[n]
		var itemKeys []uint64
		err := i.recovered(func() (err error) {
			itemKeys, err = i.processor.parse(&item)
			return err
		})
		if err != nil {
			invalid, statuses = append(invalid, item), append(statuses, quarantinedStatus(item, err))
			continue
		}
		parsed, keys = append(parsed, item), append(keys, itemKeys...)
	}
	return parsed, keys, invalid, statuses
}

func (i *Intake) process(ctx context.Context, items []Item) (statuses []event.Status, err error) {
	err = i.recovered(func() (err error) {
		statuses, err = i.processor.process(ctx, items)
		return err
	})
	return statuses, err
}

// recovered calls a function of the processor, logs a panic and turns it into an error.
func (i *Intake) recovered(call func() error) (err error) {
	defer func() {
		if p := recover(); p != nil {
			i.logger.Error("processor panicked", "panic", fmt.Sprint(p), "stack", string(debug.Stack()))
			err = fmt.Errorf("internal error: %v", p)
		}
	}()
	return call()
}

// complete records the statuses of items and clears the outage. Items that were in the
// journal at the start may have been processed earlier without a checkpoint: complete clears
// the old status of each of them that has no new status.
func (i *Intake) complete(ctx context.Context, items []Item, statuses []event.Status) error {
	lastSeq := i.lastSeqAtStart.Load()
	if n := sort.Search(len(items), func(n int) bool { return items[n].Seq > lastSeq }); n > 0 {
		statuses = withDone(items[:n], statuses)
	}
	if err := i.saveStatuses(ctx, statuses); err != nil {
		return err
	}
	i.processed.Add(uint64(len(items)))
	i.outage.Store(nil)
	i.endSpans(items, statuses)
	if i.options.OnCompleted != nil {
		now := i.options.Now()
		for n := range items {
			i.options.OnCompleted(now.Sub(items[n].Entry.ReceivedAt))
		}
	}
	return nil
}

// saveStatuses stores statuses, and retries until the database accepts them or ctx is done.
// It then counts them by state and signals deferred entries.
func (i *Intake) saveStatuses(ctx context.Context, statuses []event.Status) error {
	if len(statuses) == 0 {
		return nil
	}
	for backoff := minBackoff; ; backoff = min(2*backoff, maxBackoff) {
		err := i.statuses.Set(ctx, i.kind, statuses)
		if err == nil {
			break
		}
		i.recordOutage(err)
		if !relay.Sleep(ctx, backoff) {
			return ctx.Err()
		}
	}
	deferred, quarantined := 0, 0
	for _, status := range statuses {
		switch status.State {
		case event.Pending:
			deferred++
		case event.Done: // not counted
		default:
			quarantined++
			attrs := []any{"event", status.ID, "account", status.Account, "source", status.Source, "reason", status.Reason}
			if status.State == event.Unrouted {
				i.logger.Info("event unrouted", attrs...)
			} else {
				i.logger.Warn("event quarantined", attrs...)
			}
		}
	}
	i.quarantined.Add(uint64(quarantined))
	if deferred > 0 {
		i.deferred.Add(uint64(deferred))
		relay.Notify(i.deferredReady)
	}
	return nil
}

// recordOutage records the error that blocks processing, and logs the first one.
func (i *Intake) recordOutage(err error) {
	if i.outage.Swap(&err) == nil {
		i.logger.Warn("processing waits for a back end", "error", err)
	}
}

func quarantinedStatus(item Item, err error) event.Status {
	return item.Status(event.Quarantined, ClipReason(err.Error()))
}

// maxReason is the maximum length in bytes of a reason in a status.
const maxReason = 2000

// ClipReason truncates a reason to the maximum length in a status and replaces invalid UTF-8.
func ClipReason(s string) string {
	return decoders.Clip(strings.ToValidUTF8(s, "\uFFFD"), maxReason)
}

// retryAfter returns the delay that a back end requested, at most a minute.
func retryAfter(err error) time.Duration {
	if e, ok := errors.AsType[interface {
		error
		RetryAfter() time.Duration
	}](err); ok {
		return min(e.RetryAfter(), time.Minute)
	}
	return 0
}

// unfinished returns the batches that have not ended.
func unfinished(batches []*batch) []*batch {
	return slices.DeleteFunc(slices.Clone(batches), func(b *batch) bool {
		select {
		case <-b.ended:
			return true
		default:
			return false
		}
	})
}

// waitAll waits until batches have ended. It returns ctx.Err() if ctx is done earlier.
func waitAll(ctx context.Context, batches []*batch) error {
	for _, b := range batches {
		if !relay.Wait(ctx, b.ended) {
			return ctx.Err()
		}
	}
	return nil
}

// completeFinal completes the items with a final status. If earlier batches were still running, it
// waits for them and processes the items with a Provisional status once more.
func (i *Intake) completeFinal(ctx context.Context, earlier []*batch, items []Item, statuses []event.Status) error {
	provisionalSeqs := make(map[uint64]bool)
	var finalStatuses []event.Status
	for _, status := range statuses {
		if status.Provisional {
			provisionalSeqs[status.Seq] = true
		} else {
			finalStatuses = append(finalStatuses, status)
		}
	}
	if len(earlier) == 0 || len(provisionalSeqs) == 0 {
		return i.complete(ctx, items, statuses)
	}
	var provisional, final []Item
	for _, item := range items {
		if provisionalSeqs[item.Seq] {
			provisional = append(provisional, item)
		} else {
			final = append(final, item)
		}
	}
	if err := i.complete(ctx, final, finalStatuses); err != nil {
		return err
	}
	if err := waitAll(ctx, earlier); err != nil {
		return err
	}
	return i.processAll(ctx, nil, provisional)
}

func (i *Intake) beginSpans(items []Item) {
	if i.options.Tracer == nil {
		return
	}
	now := i.options.Now()
	for n := range items {
		item := &items[n]
		item.span = i.options.Tracer.Continue(item.Entry.Trace, "process "+string(i.kind), tracing.Consumer, now)
		if item.Trace = item.span.Parent(); item.span == nil {
			continue
		}
		item.span.Set("penstock.event", item.ID)
		item.span.Set("penstock.account", item.Entry.Account.String())
		item.span.Set("penstock.source", item.Entry.Source)
	}
}

// endSpans ends the spans of processed items. The state of an item without a status is done.
func (i *Intake) endSpans(items []Item, statuses []event.Status) {
	if i.options.Tracer == nil {
		return
	}
	statusByID := make(map[string]*event.Status, len(statuses))
	for n := range statuses {
		statusByID[statuses[n].ID] = &statuses[n]
	}
	now := i.options.Now()
	for n := range items {
		span, state, failure := items[n].span, event.Done, ""
		if status := statusByID[items[n].ID]; status != nil {
			state = status.State
			if state == event.Quarantined {
				failure = status.Reason
			}
		}
		span.Set("penstock.state", string(state))
		span.End(now, failure)
	}
}
