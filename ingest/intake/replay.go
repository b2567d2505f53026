package intake

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/penstock/penstock/ingest/journal"
	"github.com/penstock/penstock/relay"
	"github.com/penstock/penstock/relay/event"
)

// replayBatch is the maximum number of events that Replay, Reprocess and Batches read at a time.
const replayBatch = 500

// Replay processes selected events again, in order of arrival, and returns their number. The
// statuses of events that succeed are cleared. Rules evaluate the frames only if rules is set or the
// event was deferred.
func (i *Intake) Replay(ctx context.Context, f event.Filter, rules bool) (int, error) {
	seqs, _, err := i.selectedSeqs(ctx, f, time.Time{})
	if err != nil {
		return 0, err
	}
	for start := 0; start < len(seqs); start += replayBatch {
		if err := i.reprocessSeqs(ctx, seqs[start:min(start+replayBatch, len(seqs))], rules); err != nil {
			return start, err
		}
	}
	return len(seqs), nil
}

// Reprocess processes the entries from a sequence up to the checkpoint again, in order of
// arrival, and returns their number. Reprocess restores effects that a database has lost;
// rules evaluate the frames as they did the first time.
func (i *Intake) Reprocess(ctx context.Context, firstSeq uint64) (int, error) {
	count := 0
	var seqs []uint64
	flush := func() error {
		if err := i.reprocessSeqs(ctx, seqs, true); err != nil {
			return err
		}
		count, seqs = count+len(seqs), seqs[:0]
		return nil
	}
	err := i.log.Range(ctx, firstSeq, i.consumer.Committed(), func(r journal.Record) error {
		if seqs = append(seqs, r.Seq); len(seqs) == replayBatch {
			return flush()
		}
		return nil
	})
	if err == nil {
		err = flush()
	}
	return count, err
}

// selectedSeqs returns the sequences that a filter selects, in order of arrival. The search ends
// at the time until; zero means no limit.
func (i *Intake) selectedSeqs(ctx context.Context, f event.Filter, until time.Time) (seqs []uint64, end SearchEnd, err error) {
	end, err = i.Search(ctx, Search{Filter: f, Until: until}, func(_ event.Event, item *Item) bool {
		seqs = append(seqs, item.Seq)
		return true
	})
	slices.Reverse(seqs)
	return seqs, end, err
}

// Count returns the number of events that a filter selects, and the position at which the
// search stopped if it lasted until the time until.
func (i *Intake) Count(ctx context.Context, f event.Filter, until time.Time) (int, SearchEnd, error) {
	seqs, end, err := i.selectedSeqs(ctx, f, until)
	return len(seqs), end, err
}

// Selection is a batch of selected events with their items.
type Selection struct {
	Events []event.Event
	Items  []Item
}

// Batches calls fn with batches of the events that a filter selects, in order of
// arrival, and returns the results of Count. fn receives only the newest limit events.
func (i *Intake) Batches(ctx context.Context, f event.Filter, until time.Time, limit int, fn func(Selection) error) (int, SearchEnd, error) {
	seqs, end, err := i.selectedSeqs(ctx, f, until)
	if err != nil {
		return 0, end, err
	}
	newest := seqs[max(0, len(seqs)-limit):]
	for len(newest) > 0 {
		s, count, err := i.readSelection(ctx, newest[:min(replayBatch, len(newest))])
		if err != nil {
			return len(seqs), end, err
		}
		newest = newest[count:]
		if err := fn(s); err != nil {
			return len(seqs), end, err
		}
	}
	return len(seqs), end, nil
}

// readSelection returns the first events of seqs, up to the weight of a batch, and the number of
// examined sequences.
func (i *Intake) readSelection(ctx context.Context, seqs []uint64) (s Selection, count int, err error) {
	statuses, err := i.statuses.Get(ctx, i.kind, seqs[0], seqs[len(seqs)-1])
	if err != nil {
		return s, 0, err
	}
	sum := 0
	for n, seq := range seqs {
		r, err := i.log.Read(seq)
		if errors.Is(err, journal.ErrNotFound) {
			continue
		}
		if err != nil {
			return s, 0, fmt.Errorf("event %s: %w", i.id(seq), err)
		}
		if sum += weight(r.Payload); len(s.Items) > 0 && sum > maxBatchWeight {
			return s, n, nil
		}
		e, item := i.event(r, statuses[seq])
		s.Events, s.Items = append(s.Events, e), append(s.Items, item)
	}
	return s, len(seqs), nil
}

func (i *Intake) reprocessSeqs(ctx context.Context, seqs []uint64, rules bool) error {
	if len(seqs) == 0 {
		return nil
	}
	statuses, err := i.statuses.Get(ctx, i.kind, seqs[0], seqs[len(seqs)-1])
	if err != nil {
		return fmt.Errorf("replay: %w", err)
	}
	items, sum := make([]Item, 0, len(seqs)), 0
	for _, seq := range seqs {
		r, err := i.log.Read(seq)
		if errors.Is(err, journal.ErrNotFound) {
			continue
		}
		if err != nil {
			return fmt.Errorf("replay: %w", err)
		}
		w := weight(r.Payload)
		if sum+w > maxBatchWeight {
			if err := i.reprocess(ctx, items); err != nil {
				return err
			}
			items, sum = nil, 0
		}
		sum += w
		item, err := i.item(r)
		if err != nil {
			continue // the event stays quarantined
		}
		// Rules have not evaluated a deferred entry yet.
		item.ProcessNow, item.SkipRules = true, !rules && statuses[seq].State != event.Pending
		items = append(items, item)
	}
	return i.reprocess(ctx, items)
}

// reprocess processes items once more. An item that fails by itself is quarantined. If a back
// end is down, reprocess returns the error.
func (i *Intake) reprocess(ctx context.Context, items []Item) error {
	i.beginSpans(items)
	items, _, invalid, statuses := i.parse(items)
	i.endSpans(invalid, statuses)
	if err := i.statuses.Set(ctx, i.kind, statuses); err != nil {
		return err
	}
	return i.reprocessParsed(ctx, items)
}

func (i *Intake) reprocessParsed(ctx context.Context, items []Item) error {
	if len(items) == 0 {
		return nil
	}
	statuses, err := i.process(ctx, items)
	switch n := len(items) / 2; {
	case err == nil:
	case ctx.Err() != nil || relay.KindOf(err) == relay.KindUnavailable:
		return fmt.Errorf("replay: %w", err)
	case len(items) == 1:
		statuses = []event.Status{quarantinedStatus(items[0], err)}
	default:
		if err := i.reprocessParsed(ctx, items[:n]); err != nil {
			return err
		}
		return i.reprocessParsed(ctx, items[n:])
	}
	i.endSpans(items, statuses)
	return i.statuses.Set(ctx, i.kind, withDone(items, statuses))
}

// withDone adds the status done for each item without a status, to clear a stored one.
func withDone(items []Item, statuses []event.Status) []event.Status {
	known := make(map[uint64]bool, len(statuses))
	for _, status := range statuses {
		known[status.Seq] = true
	}
	for _, item := range items {
		if !known[item.Seq] {
			statuses = append(statuses, event.Status{ID: item.ID, Seq: item.Seq, State: event.Done})
		}
	}
	return statuses
}
