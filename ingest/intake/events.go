package intake

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"math"
	"time"

	"github.com/penstock/penstock/ingest/journal"
	"github.com/penstock/penstock/relay/account"
	"github.com/penstock/penstock/relay/event"
)

// Filter selects events; zero fields select all.
type Filter struct {
	IDs     []string
	State   event.State
	Account account.ID
	Source  string
	Device  string // a part of the body, any case
	Query   string // likewise; also a part of the query or the reason
	From    time.Time
	To      time.Time
}

// scanChunk is how many records are looked at before their marks are fetched.
const scanChunk = 500

// Events calls fn with the events that a filter selects, newest first, below a
// sequence (0 for all), until fn returns false.
func (i *Intake) Events(ctx context.Context, f Filter, below uint64, fn func(event.Event, uint64) bool) error {
	if below == 0 {
		below = math.MaxInt64
	}
	if len(f.IDs) > 0 {
		return i.eventsByID(ctx, f, below, fn)
	}
	if f.State == event.Quarantined || f.State == event.Unrouted {
		return i.marked(ctx, f, below, fn)
	}
	return i.scan(ctx, f, below, fn)
}

func (i *Intake) eventsByID(ctx context.Context, f Filter, below uint64, fn func(event.Event, uint64) bool) error {
	for _, id := range f.IDs {
		seq, ok := i.Sequence(id)
		if !ok || seq >= below {
			continue
		}
		marks, err := i.marks.Get(ctx, i.kind, seq, seq)
		if err != nil {
			return err
		}
		r, err := i.log.Read(seq)
		if errors.Is(err, journal.ErrNotFound) {
			continue
		}
		if err != nil {
			return fmt.Errorf("event %s: %w", id, err)
		}
		if e := i.event(r, marks[seq]); f.match(&e) && !fn(e, seq) {
			return nil
		}
	}
	return nil
}

// marked lists by state, which has an index.
func (i *Intake) marked(ctx context.Context, f Filter, below uint64, fn func(event.Event, uint64) bool) error {
	for {
		marks, err := i.marks.List(ctx, i.kind, f.State, below, scanChunk)
		if err != nil || len(marks) == 0 {
			return err
		}
		for _, m := range marks {
			below = m.Seq
			r, err := i.log.Read(m.Seq)
			if errors.Is(err, journal.ErrNotFound) {
				continue
			}
			if err != nil {
				return fmt.Errorf("event %s: %w", m.ID, err)
			}
			if e := i.event(r, m); f.match(&e) && !fn(e, m.Seq) {
				return nil
			}
		}
	}
}

// scan walks the journal backwards.
func (i *Intake) scan(ctx context.Context, f Filter, below uint64, fn func(event.Event, uint64) bool) error {
	for {
		chunk, err := i.log.Before(ctx, below, scanChunk, nil)
		if err != nil || len(chunk) == 0 {
			return err
		}
		below = chunk[len(chunk)-1].Seq
		marks, err := i.marks.Get(ctx, i.kind, below, chunk[0].Seq)
		if err != nil {
			return err
		}
		for _, r := range chunk {
			if !f.From.IsZero() && r.Time.Before(f.From) {
				return nil
			}
			if e := i.event(r, marks[r.Seq]); f.match(&e) && !fn(e, r.Seq) {
				return nil
			}
		}
	}
}

// event describes a record and what became of it.
func (i *Intake) event(r journal.Record, m event.Mark) event.Event {
	it, err := i.item(r)
	e := event.Event{
		ID: it.ID, ReceivedAt: r.Time, Kind: i.kind, Source: it.Entry.Source, Account: it.Entry.Account,
		State: m.State, Reason: m.Reason, Outcome: m.Outcome, Raw: it.Entry.Body,
	}
	if len(e.Raw) == 0 {
		e.Raw = []byte(it.Entry.Query)
	}
	if m.Source != "" {
		e.Source = m.Source
	}
	if m.Account != 0 {
		e.Account = m.Account
	}
	switch {
	case err != nil:
		e.State, e.Reason = event.Quarantined, err.Error()
	case m.State != "":
	case r.Seq > i.consumer.Committed():
		e.State = event.Pending
	default:
		e.State = event.Done
	}
	return e
}

func (f *Filter) match(e *event.Event) bool {
	return (f.State == "" || f.State == e.State) &&
		(f.Account == 0 || f.Account == e.Account) &&
		(f.Source == "" || f.Source == e.Source) &&
		(f.From.IsZero() || !e.ReceivedAt.Before(f.From)) &&
		(f.To.IsZero() || !e.ReceivedAt.After(f.To)) &&
		(f.Device == "" || contains(e.Raw, f.Device)) &&
		(f.Query == "" || contains(e.Raw, f.Query) || contains([]byte(e.ID+" "+e.Reason), f.Query))
}

func contains(text []byte, part string) bool {
	return bytes.Contains(bytes.ToLower(text), bytes.ToLower([]byte(part)))
}

// replayBatch is how many events are processed again at a time.
const replayBatch = 500

// Replay processes the events that a filter selects again, newest first, and
// returns how many there were. Those that work now lose their mark.
func (i *Intake) Replay(ctx context.Context, f Filter, dryRun bool) (int, error) {
	var seqs []uint64
	err := i.Events(ctx, f, 0, func(_ event.Event, seq uint64) bool {
		seqs = append(seqs, seq)
		return true
	})
	if err != nil || dryRun {
		return len(seqs), err
	}
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
	marks, err := i.process(ctx, items)
	if err != nil {
		return fmt.Errorf("replay: %w", err)
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
