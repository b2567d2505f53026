package intake

import (
	"context"

	"github.com/penstock/penstock/relay/event"
	"github.com/penstock/penstock/relay/tracing"
)

// beginJournal begins the span of an entry that is journalled: below the request's, nil
// if that has none.
func (i *Intake) beginJournal(ctx context.Context) *tracing.Active {
	if i.options.Tracer == nil {
		return nil
	}
	return i.options.Tracer.Continue(tracing.FromContext(ctx), "journal "+string(i.kind), tracing.Producer, i.options.Now())
}

// beginSpans begins the spans of entries that are processed.
func (i *Intake) beginSpans(items []Item) {
	if i.options.Tracer == nil {
		return
	}
	now := i.options.Now()
	for n := range items {
		it := &items[n]
		it.span = i.options.Tracer.Continue(it.Entry.Trace, "process "+string(i.kind), tracing.Consumer, now)
		if it.Trace = it.span.Parent(); it.span == nil {
			continue
		}
		it.span.Set("penstock.event", it.ID)
		it.span.Set("penstock.account", it.Entry.Account.String())
		it.span.Set("penstock.source", it.Entry.Source)
	}
}

// endSpans ends the spans of entries that were processed; statuses are those with another
// end than done.
func (i *Intake) endSpans(items []Item, statuses []event.Status) {
	if i.options.Tracer == nil {
		return
	}
	ends := make(map[string]*event.Status, len(statuses))
	for n := range statuses {
		ends[statuses[n].ID] = &statuses[n]
	}
	now := i.options.Now()
	for n := range items {
		span, state, failed := items[n].span, event.Done, ""
		if m := ends[items[n].ID]; m != nil {
			state = m.State
			if state == event.Quarantined {
				failed = m.Reason
			}
		}
		span.Set("penstock.state", string(state))
		span.End(now, failed)
	}
}
