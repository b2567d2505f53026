package intake

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"math"
	"net/url"
	"slices"
	"strings"

	"github.com/penstock/penstock/ingest/journal"
	"github.com/penstock/penstock/relay"
	"github.com/penstock/penstock/relay/event"
)

// scanChunk is how many records are read before their statuses are fetched.
const scanChunk = 500

// Events calls fn with the events that a filter selects, newest first, below a
// sequence (0 for all), until fn returns false.
func (i *Intake) Events(ctx context.Context, f event.Filter, below uint64, fn func(event.Event, uint64) bool) error {
	return i.Items(ctx, f, below, func(e event.Event, it *Item) bool { return fn(e, it.Seq) })
}

// Items is Events with the items of the events.
func (i *Intake) Items(ctx context.Context, f event.Filter, below uint64, fn func(event.Event, *Item) bool) error {
	if below == 0 {
		below = math.MaxInt64
	}
	if len(f.IDs) > 0 {
		return i.eventsByID(ctx, f, below, fn)
	}
	if f.State == event.Quarantined || f.State == event.Unrouted {
		return i.listByState(ctx, f, below, fn)
	}
	return i.scan(ctx, f, below, i.statuses.Get, fn)
}

// FromJournal is Events without the stored states, for when they cannot be read:
// the state of what is processed is event.Unknown. It tells nothing by state.
func (i *Intake) FromJournal(ctx context.Context, f event.Filter, below uint64, fn func(event.Event, uint64) bool) error {
	if below == 0 {
		below = math.MaxInt64
	}
	unread := func(_ context.Context, _ event.Kind, from, to uint64) (map[uint64]event.Status, error) {
		statuses := make(map[uint64]event.Status, to-from+1)
		for seq := from; seq <= min(to, i.consumer.Committed()); seq++ {
			statuses[seq] = event.Status{Seq: seq, State: event.Unknown}
		}
		return statuses, nil
	}
	return i.scan(ctx, f, below, unread, func(e event.Event, it *Item) bool { return fn(e, it.Seq) })
}

// Event returns one event with its item; relay.KindNotFound if this intake did
// not assign the id or the record is deleted.
func (i *Intake) Event(ctx context.Context, id string) (event.Event, Item, error) {
	seq, ok := i.Sequence(id)
	if !ok {
		return event.Event{}, Item{}, relay.Errorf(relay.KindNotFound, "event %s: not of this journal", id)
	}
	statuses, err := i.statuses.Get(ctx, i.kind, seq, seq)
	if err != nil {
		return event.Event{}, Item{}, err
	}
	r, err := i.log.Read(seq)
	if errors.Is(err, journal.ErrNotFound) {
		return event.Event{}, Item{}, relay.Errorf(relay.KindNotFound, "event %s: gone", id)
	}
	if err != nil {
		return event.Event{}, Item{}, fmt.Errorf("event %s: %w", id, err)
	}
	e, it := i.event(r, statuses[seq])
	return e, it, nil
}

func (i *Intake) eventsByID(ctx context.Context, f event.Filter, below uint64, fn func(event.Event, *Item) bool) error {
	for _, seq := range i.sequences(f.IDs) {
		if seq >= below {
			continue
		}
		statuses, err := i.statuses.Get(ctx, i.kind, seq, seq)
		if err != nil {
			return err
		}
		if more, err := i.visit(f, seq, statuses[seq], fn); err != nil || !more {
			return err
		}
	}
	return nil
}

// sequences returns the sequences of the ids that this intake assigned, newest
// first and without duplicates.
func (i *Intake) sequences(ids []string) []uint64 {
	var seqs []uint64
	for _, id := range ids {
		if seq, ok := i.Sequence(id); ok {
			seqs = append(seqs, seq)
		}
	}
	slices.Sort(seqs)
	seqs = slices.Compact(seqs)
	slices.Reverse(seqs)
	return seqs
}

// visit calls fn with an event if the filter selects it and its record still
// exists, and reports whether to continue.
func (i *Intake) visit(f event.Filter, seq uint64, m event.Status, fn func(event.Event, *Item) bool) (more bool, err error) {
	r, err := i.log.Read(seq)
	if errors.Is(err, journal.ErrNotFound) {
		return true, nil
	}
	if err != nil {
		return false, fmt.Errorf("event %s: %w", i.id(seq), err)
	}
	e, it := i.event(r, m)
	return !i.selects(&f, &e, &it) || fn(e, &it), nil
}

// listByState lists events by state, which has an index.
func (i *Intake) listByState(ctx context.Context, f event.Filter, below uint64, fn func(event.Event, *Item) bool) error {
	for {
		statuses, err := i.statuses.List(ctx, i.kind, f.State, below, scanChunk)
		if err != nil || len(statuses) == 0 {
			return err
		}
		for _, m := range statuses {
			below = m.Seq
			if more, err := i.visit(f, m.Seq, m, fn); err != nil || !more {
				return err
			}
		}
	}
}

// scan reads the journal backwards; read returns the statuses of a range of sequences.
func (i *Intake) scan(ctx context.Context, f event.Filter, below uint64, read func(context.Context, event.Kind, uint64, uint64) (map[uint64]event.Status, error), fn func(event.Event, *Item) bool) error {
	for {
		chunk, err := i.log.Before(ctx, below, scanChunk, nil)
		if err != nil || len(chunk) == 0 {
			return err
		}
		below = chunk[len(chunk)-1].Seq
		statuses, err := read(ctx, i.kind, below, chunk[0].Seq)
		if err != nil {
			return err
		}
		for _, r := range chunk {
			if !f.From.IsZero() && r.Time.Before(f.From) {
				return nil
			}
			if e, it := i.event(r, statuses[r.Seq]); i.selects(&f, &e, &it) && !fn(e, &it) {
				return nil
			}
		}
	}
}

// event returns the event of a record.
func (i *Intake) event(r journal.Record, m event.Status) (event.Event, Item) {
	it, err := i.item(r)
	e := event.Event{
		ID: it.ID, ReceivedAt: r.Time, Kind: i.kind, Source: it.Entry.Source, Account: it.Entry.Account,
		State: m.State, Reason: m.Reason, Outcome: m.Outcome, Notes: m.Notes, Raw: it.Entry.Body,
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
		e.State, e.Reason, e.Raw = event.Quarantined, err.Error(), r.Payload
	case m.State != "":
	case r.Seq > i.consumer.Committed():
		e.State = event.Pending
	default:
		e.State = event.Done
	}
	return e, it
}

// Describer is a Processor that describes the content of an entry in one line.
type Describer interface {
	Describe(e *Entry) string
}

// selects reports whether a filter selects an event, and describes the event.
func (i *Intake) selects(f *event.Filter, e *event.Event, it *Item) bool {
	if !matches(f, e, it) {
		return false
	}
	if e.Outcome == "" {
		e.Outcome = i.describe(&it.Entry)
	}
	return f.Query == "" || it.holds(e, f.Query) || contains([]byte(e.ID+"\n"+e.Reason+"\n"+e.Outcome+"\n"+strings.Join(e.Notes, "\n")), f.Query)
}

// describe calls the processor's Describe. A panic must not hide the event.
func (i *Intake) describe(e *Entry) (text string) {
	p, ok := i.processor.(Describer)
	if !ok {
		return ""
	}
	defer func() {
		if v := recover(); v != nil {
			text = fmt.Sprintf("cannot be described: %v", v)
		}
	}()
	return ClipReason(p.Describe(e))
}

// matches checks the fields that need no description.
func matches(f *event.Filter, e *event.Event, it *Item) bool {
	return (f.State == "" || f.State == e.State) &&
		(f.Account == 0 || f.Account == e.Account) &&
		(f.Source == "" || f.Source == e.Source) &&
		(f.From.IsZero() || !e.ReceivedAt.Before(f.From)) &&
		(f.To.IsZero() || !e.ReceivedAt.After(f.To)) &&
		(f.Device == "" || it.holds(e, f.Device))
}

// holds reports whether the posted data contains a text.
func (it *Item) holds(e *event.Event, text string) bool {
	path, _ := url.PathUnescape(it.Entry.Path)
	return contains(e.Raw, text) || contains([]byte(path+"\n"+it.Entry.Query), text)
}

func contains(text []byte, part string) bool {
	return bytes.Contains(bytes.ToLower(text), bytes.ToLower([]byte(part)))
}
