package intake

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/penstock/penstock/ingest/journal"
	"github.com/penstock/penstock/relay"
	"github.com/penstock/penstock/relay/event"
)

// replayBatch is how many events are processed again at a time.
const replayBatch = 500

// Replay processes the events that a filter selects again, in the order in which
// they came, and returns how many there were. Those that work now lose their mark.
func (i *Intake) Replay(ctx context.Context, f Filter, dryRun bool) (int, error) {
	var seqs []uint64
	err := i.Events(ctx, f, 0, func(_ event.Event, seq uint64) bool {
		seqs = append(seqs, seq)
		return true
	})
	if err != nil || dryRun {
		return len(seqs), err
	}
	slices.Reverse(seqs)
	for start := 0; start < len(seqs); start += replayBatch {
		if err := i.again(ctx, seqs[start:min(start+replayBatch, len(seqs))]); err != nil {
			return start, err
		}
	}
	return len(seqs), nil
}

func (i *Intake) again(ctx context.Context, seqs []uint64) error {
	items := make([]Item, 0, len(seqs))
	for _, seq := range seqs {
		r, err := i.log.Read(seq)
		if errors.Is(err, journal.ErrNotFound) {
			continue
		}
		if err != nil {
			return fmt.Errorf("replay: %w", err)
		}
		it, err := i.item(r)
		if err != nil {
			continue // it stays set aside
		}
		items = append(items, it)
	}
	return i.reprocess(ctx, items)
}

// reprocess brings items to an end once more. One that fails for a reason of its
// own is set aside with that; a back end that is down ends the replay.
func (i *Intake) reprocess(ctx context.Context, items []Item) error {
	if len(items) == 0 {
		return nil
	}
	marks, err := i.process(ctx, items)
	switch half := len(items) / 2; {
	case err == nil:
	case ctx.Err() != nil || relay.KindOf(err) == relay.KindUnavailable:
		return fmt.Errorf("replay: %w", err)
	case len(items) == 1:
		marks = []event.Mark{setAside(items[0], err)}
	default:
		if err := i.reprocess(ctx, items[:half]); err != nil {
			return err
		}
		return i.reprocess(ctx, items[half:])
	}
	return i.marks.Set(ctx, i.kind, withDone(items, marks))
}

// withDone adds a mark that clears for every item that has none.
func withDone(items []Item, marks []event.Mark) []event.Mark {
	marked := make(map[uint64]bool, len(marks))
	for _, m := range marks {
		marked[m.Seq] = true
	}
	for _, it := range items {
		if !marked[it.Seq] {
			marks = append(marks, event.Mark{ID: it.ID, Seq: it.Seq, State: event.Done})
		}
	}
	return marks
}
