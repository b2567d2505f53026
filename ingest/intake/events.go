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
	"time"
	"unicode"
	"unicode/utf8"

	"github.com/penstock/penstock/ingest/journal"
	"github.com/penstock/penstock/relay"
	"github.com/penstock/penstock/relay/event"
)

// The largest number of records, and of their bytes, that are read before their statuses are
// fetched.
const (
	scanChunk = 500
	scanBytes = 1 << 20
)

// Search is a search among the events of an intake, newest first.
type Search struct {
	Filter event.Filter
	Below  uint64    // only events with a lower sequence; 0 for all
	Until  time.Time // the search stops at the first record that it examines after this time; zero for no limit
	// MaxExamined is the number of records after which the search stops; 0 for no limit.
	MaxExamined int
	// JournalOnly is for an outage of the database: the state of every processed event is
	// event.Unknown.
	JournalOnly bool

	examined int
}

// Reached is the position at which a search stopped: the lowest sequence that it examined.
// Reached is zero if the search examined everything, or searched for ids.
type Reached struct {
	Seq  uint64
	Time time.Time // of the record with that sequence
}

// Events calls fn with the events that a filter selects, newest first, below a
// sequence (0 for all), until fn returns false.
func (i *Intake) Events(ctx context.Context, f event.Filter, limitSeq uint64, fn func(event.Event, uint64) bool) error {
	_, err := i.Search(ctx, Search{Filter: f, Below: limitSeq}, func(e event.Event, it *Item) bool { return fn(e, it.Seq) })
	return err
}

// Search calls fn with the selected events and their items, newest first, until fn returns
// false or the search reaches a limit.
func (i *Intake) Search(ctx context.Context, s Search, fn func(event.Event, *Item) bool) (Reached, error) {
	if s.Below == 0 {
		s.Below = math.MaxInt64
	}
	switch f := &s.Filter; {
	case s.JournalOnly:
		return i.scan(ctx, s, i.unreadStatuses, fn)
	case len(f.IDs) > 0:
		return Reached{}, i.eventsByID(ctx, s.Filter, s.Below, fn)
	case f.State == event.Quarantined || f.State == event.Unrouted:
		return i.listByState(ctx, s, fn)
	}
	return i.scan(ctx, s, i.statuses.Get, fn)
}

// countExamined counts a record and reports whether the search has reached a limit.
func (s *Search) countExamined() (isOver bool) {
	s.examined++
	return s.MaxExamined > 0 && s.examined >= s.MaxExamined || !s.Until.IsZero() && time.Now().After(s.Until)
}

// unreadStatuses returns statuses in place of the stored ones when these cannot be read.
func (i *Intake) unreadStatuses(_ context.Context, _ event.Kind, start, end uint64) (map[uint64]event.Status, error) {
	statuses := make(map[uint64]event.Status)
	for seq := start; seq <= min(end, i.consumer.Committed()); seq++ {
		statuses[seq] = event.Status{Seq: seq, State: event.Unknown}
	}
	return statuses, nil
}

// Event returns the event with an id and its item. The error is of relay.KindNotFound if
// the id is not of this intake or the record is deleted.
func (i *Intake) Event(ctx context.Context, id string) (event.Event, Item, error) {
	seq, ok := i.Sequence(id)
	if !ok {
		return event.Event{}, Item{}, relay.Errorf(relay.KindNotFound, "event %s: not an id of this journal", id)
	}
	statuses, err := i.statuses.Get(ctx, i.kind, seq, seq)
	if err != nil {
		return event.Event{}, Item{}, err
	}
	r, err := i.log.Read(seq)
	if errors.Is(err, journal.ErrNotFound) {
		return event.Event{}, Item{}, relay.Errorf(relay.KindNotFound, "event %s: its record is deleted", id)
	}
	if err != nil {
		return event.Event{}, Item{}, fmt.Errorf("event %s: %w", id, err)
	}
	e, it := i.event(r, statuses[seq])
	return e, it, nil
}

func (i *Intake) eventsByID(ctx context.Context, f event.Filter, limitSeq uint64, fn func(event.Event, *Item) bool) error {
	var seqs []uint64
	for _, id := range f.IDs {
		if seq, ok := i.Sequence(id); ok {
			seqs = append(seqs, seq)
		}
	}
	slices.Sort(seqs)
	for _, seq := range slices.Backward(slices.Compact(seqs)) {
		if seq >= limitSeq {
			continue
		}
		statuses, err := i.statuses.Get(ctx, i.kind, seq, seq)
		if err != nil {
			return err
		}
		if _, goOn, err := i.visit(f, seq, statuses[seq], fn); err != nil || !goOn {
			return err
		}
	}
	return nil
}

// visit calls fn with an event if the filter selects it and its record still
// exists. It returns the record, and whether to continue.
func (i *Intake) visit(f event.Filter, seq uint64, status event.Status, fn func(event.Event, *Item) bool) (r journal.Record, goOn bool, err error) {
	r, err = i.log.Read(seq)
	if errors.Is(err, journal.ErrNotFound) {
		return r, true, nil
	}
	if err != nil {
		return r, false, fmt.Errorf("event %s: %w", i.id(seq), err)
	}
	e, it := i.event(r, status)
	return r, !i.selects(&f, &e, &it) || fn(e, &it), nil
}

// listByState lists events by state, which has an index.
func (i *Intake) listByState(ctx context.Context, s Search, fn func(event.Event, *Item) bool) (Reached, error) {
	for {
		statuses, err := i.statuses.List(ctx, i.kind, s.Filter.State, s.Below, scanChunk)
		if err != nil || len(statuses) == 0 {
			return Reached{}, err
		}
		for _, status := range statuses {
			s.Below = status.Seq
			r, goOn, err := i.visit(s.Filter, status.Seq, status, fn)
			if err != nil {
				return Reached{}, err
			}
			if !goOn || s.countExamined() {
				return Reached{status.Seq, r.Time}, nil
			}
		}
	}
}

// scan reads the journal backwards. read returns the statuses of a range of sequences.
func (i *Intake) scan(ctx context.Context, s Search, read func(context.Context, event.Kind, uint64, uint64) (map[uint64]event.Status, error), fn func(event.Event, *Item) bool) (Reached, error) {
	f := &s.Filter
	for limitSeq := s.Below; ; {
		chunk, err := i.log.Before(ctx, limitSeq, scanChunk, scanBytes)
		if err != nil || len(chunk) == 0 {
			return Reached{}, err
		}
		limitSeq = chunk[len(chunk)-1].Seq
		statuses, err := read(ctx, i.kind, limitSeq, chunk[0].Seq)
		if err != nil {
			return Reached{}, err
		}
		for _, r := range chunk {
			if !f.From.IsZero() && r.Time.Before(f.From) {
				return Reached{}, nil
			}
			if e, it := i.event(r, statuses[r.Seq]); i.selects(f, &e, &it) && !fn(e, &it) || s.countExamined() {
				return Reached{r.Seq, r.Time}, nil
			}
		}
	}
}

func (i *Intake) event(r journal.Record, status event.Status) (event.Event, Item) {
	it, err := i.item(r)
	e := event.Event{
		ID: it.ID, ReceivedAt: r.Time, Kind: i.kind, Source: it.Entry.Source, Account: it.Entry.Account,
		State: status.State, Reason: status.Reason, Outcome: status.Outcome, Notes: status.Notes, Raw: it.Entry.Body,
	}
	if len(e.Raw) == 0 {
		e.Raw = []byte(it.Entry.Query)
	}
	if status.Source != "" {
		e.Source = status.Source
	}
	if status.Account != 0 {
		e.Account = status.Account
	}
	switch {
	case err != nil:
		e.State, e.Reason, e.Raw = event.Quarantined, err.Error(), r.Payload
	case status.State != "":
	case r.Seq > i.consumer.Committed():
		e.State = event.Pending
	default:
		e.State = event.Done
	}
	return e, it
}

// selects reports whether a filter selects an event, and describes the event if it does.
func (i *Intake) selects(f *event.Filter, e *event.Event, it *Item) bool {
	if !matches(f, e, it) || f.Number != "" && !i.names(it, f.Number) || f.Match != nil && !f.Match(e.Account, i.subjects(*it)) {
		return false
	}
	contains := f.Query == "" || it.contains(e, f.Query) ||
		containsFold([]byte(e.ID+"\n"+e.Reason+"\n"+e.Outcome+"\n"+strings.Join(e.Notes, "\n")), f.Query)
	// The description of an uplink is not searched: apart from a devEUI in base64 its values stand
	// in the body, and parsing thousands of bodies takes a second. Other bodies can hold the text
	// of a message in hexadecimal or percent-encoded.
	isUplink := i.kind == event.Uplink
	if !contains && isUplink {
		return false
	}
	if e.Outcome == "" {
		e.Outcome = i.describe(*it)
	}
	return contains || containsFold([]byte(e.Outcome), f.Query)
}

// names reports whether the description of an item contains a number, or the name of a
// sender, as a whole word.
func (i *Intake) names(it *Item, number string) bool {
	// A search of the bytes, in which digits are not encoded, is cheaper than parsing.
	if strings.Trim(number, "0123456789") == "" && !bytes.Contains(it.Entry.Body, []byte(number)) && !strings.Contains(it.Entry.Query, number) {
		return false
	}
	isPart := func(r rune) bool { return unicode.IsLetter(r) || unicode.IsDigit(r) }
	for remaining := i.describe(*it); ; {
		before, after, found := strings.Cut(remaining, number)
		if !found {
			return false
		}
		last, _ := utf8.DecodeLastRuneInString(before)
		next, _ := utf8.DecodeRuneInString(after)
		if !isPart(last) && !isPart(next) {
			return true
		}
		remaining = after
	}
}

// describe describes the content of an item. The text is empty if the item cannot be parsed.
// A panic must not hide the event.
func (i *Intake) describe(it Item) (text string) {
	err := i.recovered(func() error {
		if _, err := i.processor.parse(&it); err == nil {
			text = i.processor.describe(&it)
		}
		return nil
	})
	if err != nil {
		text = "cannot be described: " + err.Error()
	}
	return ClipReason(text)
}

// subjects returns the subjects of an item, or none if it cannot be parsed.
func (i *Intake) subjects(it Item) (subjects []string) {
	err := i.recovered(func() error {
		_, err := i.processor.parse(&it)
		if err == nil {
			subjects = i.processor.subjects(&it)
		}
		return err
	})
	if err != nil {
		return nil
	}
	return subjects
}

// matches reports whether an event agrees with the fields of a filter that need no
// description.
func matches(f *event.Filter, e *event.Event, it *Item) bool {
	return (f.State == "" || f.State == e.State) &&
		(f.Account == 0 || f.Account == e.Account) &&
		(f.Source == "" || f.Source == e.Source) &&
		(f.From.IsZero() || !e.ReceivedAt.Before(f.From)) &&
		(f.To.IsZero() || !e.ReceivedAt.After(f.To)) &&
		(f.Reason == "" || containsFold([]byte(e.Reason), f.Reason)) &&
		(f.Device == "" || it.hasIdentifier(e, f.Device))
}

// contains reports whether the posted data contains a text, in any case.
func (it *Item) contains(e *event.Event, text string) bool {
	return containsFold(e.Raw, text) || containsFold(it.pathAndQuery(), text)
}

// hasIdentifier reports whether the posted data contains a device's identifier, in any case,
// with or without the separators of devEUIs and MAC addresses.
func (it *Item) hasIdentifier(e *event.Event, identifier string) bool {
	stripped := withoutSeparators([]byte(identifier))
	return bytes.Contains(withoutSeparators(e.Raw), stripped) || bytes.Contains(withoutSeparators(it.pathAndQuery()), stripped)
}

func (it *Item) pathAndQuery() []byte {
	path, _ := url.PathUnescape(it.Entry.Path)
	return []byte(path + "\n" + it.Entry.Query)
}

// withoutSeparators returns a text without hyphens and colons, its ASCII letters in lower case.
func withoutSeparators(text []byte) []byte {
	stripped := make([]byte, 0, len(text))
	for _, c := range text {
		switch {
		case c == '-' || c == ':':
		case 'A' <= c && c <= 'Z':
			stripped = append(stripped, c-'A'+'a')
		default:
			stripped = append(stripped, c)
		}
	}
	return stripped
}

func containsFold(text []byte, part string) bool {
	return bytes.Contains(bytes.ToLower(text), bytes.ToLower([]byte(part)))
}
