package intake

import (
	"bytes"
	"context"
	"encoding/base64"
	"encoding/hex"
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
	Filter    event.Filter
	BeforeSeq uint64    // only events with a lower sequence; 0 for all
	Until     time.Time // the search stops at the first record that it examines after this time; zero for no limit
	// MaxExamined is the number of records after which the search stops; 0 for no limit.
	MaxExamined int
	// JournalOnly searches without the database, for example during its outage: the state of
	// every processed event is event.Unknown.
	JournalOnly bool

	examined int
}

// SearchEnd is the position at which a search stopped: the lowest sequence that it examined.
// It is zero if the search examined everything, or searched for ids.
type SearchEnd struct {
	Seq  uint64
	Time time.Time // of the record with that sequence
}

// Events calls fn with the events that a filter selects, newest first, below a
// sequence (0 for all), until fn returns false.
func (i *Intake) Events(ctx context.Context, f event.Filter, limitSeq uint64, fn func(event.Event, uint64) bool) error {
	_, err := i.Search(ctx, Search{Filter: f, BeforeSeq: limitSeq}, func(e event.Event, item *Item) bool { return fn(e, item.Seq) })
	return err
}

// Search calls fn with the selected events and their items, newest first, until fn returns
// false or the search reaches a limit.
func (i *Intake) Search(ctx context.Context, s Search, fn func(event.Event, *Item) bool) (SearchEnd, error) {
	if s.BeforeSeq == 0 {
		s.BeforeSeq = math.MaxInt64
	}
	switch f := &s.Filter; {
	case s.JournalOnly:
		return i.scan(ctx, s, i.unreadStatuses, fn)
	case len(f.IDs) > 0:
		return SearchEnd{}, i.eventsByID(ctx, s.Filter, s.BeforeSeq, fn)
	case f.State == event.Quarantined || f.State == event.Unrouted:
		return i.listByState(ctx, s, fn)
	}
	return i.scan(ctx, s, i.statuses.Get, fn)
}

// countExamined counts a record and reports whether the search has reached a limit.
func (s *Search) countExamined() (atLimit bool) {
	s.examined++
	return s.MaxExamined > 0 && s.examined >= s.MaxExamined || !s.Until.IsZero() && time.Now().After(s.Until)
}

// unreadStatuses returns statuses with event.Unknown in place of the stored ones.
func (i *Intake) unreadStatuses(_ context.Context, _ event.Kind, start, end uint64) (map[uint64]event.Status, error) {
	statuses := make(map[uint64]event.Status)
	for seq := start; seq <= min(end, i.consumer.Committed()); seq++ {
		statuses[seq] = event.Status{Seq: seq, State: event.Unknown}
	}
	return statuses, nil
}

// Event returns the event with an id, with its description, and its item. The error is of
// relay.KindNotFound if the id does not belong to this intake or the record is deleted.
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
	e, item := i.event(r, statuses[seq])
	if e.Outcome == "" {
		e.Outcome = i.describe(item)
	}
	return e, item, nil
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
		if _, proceed, err := i.visit(f, seq, statuses[seq], fn); err != nil || !proceed {
			return err
		}
	}
	return nil
}

// visit calls fn with an event if the filter selects it and its record still
// exists. It returns the record, and whether to continue.
func (i *Intake) visit(f event.Filter, seq uint64, status event.Status, fn func(event.Event, *Item) bool) (r journal.Record, proceed bool, err error) {
	r, err = i.log.Read(seq)
	if errors.Is(err, journal.ErrNotFound) {
		return r, true, nil
	}
	if err != nil {
		return r, false, fmt.Errorf("event %s: %w", i.id(seq), err)
	}
	e, item := i.event(r, status)
	return r, !i.selects(&f, &e, &item) || fn(e, &item), nil
}

// listByState lists events by state, which has an index.
func (i *Intake) listByState(ctx context.Context, s Search, fn func(event.Event, *Item) bool) (SearchEnd, error) {
	for {
		statuses, err := i.statuses.List(ctx, i.kind, s.Filter.State, s.BeforeSeq, scanChunk)
		if err != nil || len(statuses) == 0 {
			return SearchEnd{}, err
		}
		for _, status := range statuses {
			s.BeforeSeq = status.Seq
			r, proceed, err := i.visit(s.Filter, status.Seq, status, fn)
			if err != nil {
				return SearchEnd{}, err
			}
			if !proceed || s.countExamined() {
				return SearchEnd{status.Seq, r.Time}, nil
			}
		}
	}
}

// scan reads the journal backwards. read returns the statuses of a range of sequences.
func (i *Intake) scan(ctx context.Context, s Search, read func(context.Context, event.Kind, uint64, uint64) (map[uint64]event.Status, error), fn func(event.Event, *Item) bool) (SearchEnd, error) {
	f := &s.Filter
	for limitSeq := s.BeforeSeq; ; {
		chunk, err := i.log.Before(ctx, limitSeq, scanChunk, scanBytes)
		if err != nil || len(chunk) == 0 {
			return SearchEnd{}, err
		}
		limitSeq = chunk[len(chunk)-1].Seq
		statuses, err := read(ctx, i.kind, limitSeq, chunk[0].Seq)
		if err != nil {
			return SearchEnd{}, err
		}
		for _, r := range chunk {
			if !f.From.IsZero() && r.Time.Before(f.From) {
				return SearchEnd{}, nil
			}
			if e, item := i.event(r, statuses[r.Seq]); i.selects(f, &e, &item) && !fn(e, &item) || s.countExamined() {
				return SearchEnd{r.Seq, r.Time}, nil
			}
		}
	}
}

func (i *Intake) event(r journal.Record, status event.Status) (event.Event, Item) {
	item, err := i.item(r)
	e := event.Event{
		ID: item.ID, ReceivedAt: r.Time, Kind: i.kind, Source: item.Entry.Source, Account: item.Entry.Account,
		State: status.State, Reason: status.Reason, Outcome: status.Outcome, Notes: status.Notes, Raw: item.Entry.Body,
	}
	if len(e.Raw) == 0 {
		e.Raw = []byte(item.Entry.Query)
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
	return e, item
}

// selects reports whether a filter selects an event. If a selected event has no outcome, selects
// sets the outcome to the description.
func (i *Intake) selects(f *event.Filter, e *event.Event, item *Item) bool {
	if !matches(f, e) || f.Device != "" && !i.isOfDevice(f.Device, e, item) || f.Number != "" && !i.mentions(item, f.Number) || f.Match != nil && !f.Match(e.Account, i.subjects(*item)) {
		return false
	}
	contains := f.Query == "" || item.contains(e, f.Query) ||
		containsFold([]byte(e.ID+"\n"+e.Reason+"\n"+e.Outcome+"\n"+strings.Join(e.Notes, "\n")), f.Query)
	// The description of an uplink is not searched: apart from a devEUI in base64, the body
	// contains its values, and parsing thousands of bodies takes a second. Other bodies may
	// contain the text of a message in hexadecimal or percent-encoding.
	isUplink := i.kind == event.Uplink
	if !contains && isUplink {
		return false
	}
	if e.Outcome == "" {
		e.Outcome = i.describe(*item)
	}
	return contains || containsFold([]byte(e.Outcome), f.Query)
}

// mentions reports whether the description of an item contains a phone number or an
// alphanumeric sender as a whole word.
func (i *Intake) mentions(item *Item, number string) bool {
	// The raw bytes contain digits unencoded, and searching them is cheaper than parsing.
	if strings.Trim(number, "0123456789") == "" && !bytes.Contains(item.Entry.Body, []byte(number)) && !strings.Contains(item.Entry.Query, number) {
		return false
	}
	isWordRune := func(r rune) bool { return unicode.IsLetter(r) || unicode.IsDigit(r) }
	for remaining := i.describe(*item); ; {
		prefix, suffix, found := strings.Cut(remaining, number)
		if !found {
			return false
		}
		previousRune, _ := utf8.DecodeLastRuneInString(prefix)
		nextRune, _ := utf8.DecodeRuneInString(suffix)
		if !isWordRune(previousRune) && !isWordRune(nextRune) {
			return true
		}
		remaining = suffix
	}
}

// describe returns the description of an item, which is empty if the item cannot be parsed.
// After a panic of the processor, describe returns the panic, so that the event is listed.
func (i *Intake) describe(item Item) (text string) {
	err := i.recovered(func() error {
		if _, err := i.processor.parse(&item); err == nil {
			text = i.processor.describe(&item)
		}
		return nil
	})
	if err != nil {
		text = "cannot be described: " + err.Error()
	}
	return ClipReason(text)
}

// subjects returns the subjects of an item, or none if it cannot be parsed.
func (i *Intake) subjects(item Item) (subjects []string) {
	_ = i.recovered(func() error {
		if _, err := i.processor.parse(&item); err == nil {
			subjects = i.processor.subjects(&item)
		}
		return nil
	})
	return subjects
}

// matches reports whether an event matches those fields of a filter that need no
// description.
func matches(f *event.Filter, e *event.Event) bool {
	return (f.State == "" || f.State == e.State) &&
		(f.Account == 0 || f.Account == e.Account) &&
		(f.Source == "" || f.Source == e.Source) &&
		(f.From.IsZero() || !e.ReceivedAt.Before(f.From)) &&
		(f.To.IsZero() || !e.ReceivedAt.After(f.To)) &&
		(f.Reason == "" || containsFold([]byte(e.Reason), f.Reason))
}

// contains reports whether the body, path or query contains a text, ignoring case.
func (i *Item) contains(e *event.Event, text string) bool {
	return containsFold(e.Raw, text) || containsFold(i.pathAndQuery(), text)
}

// isOfDevice reports whether an event belongs to the device with a normalized identifier. An event
// without subjects, such as one that cannot be parsed, must contain the identifier.
func (i *Intake) isOfDevice(identifier string, e *event.Event, item *Item) bool {
	// Search first, because parsing is slower. The Things Stack writes the application and the name
	// of a device in two fields, and senders may escape other characters than those of an EUI.
	name := identifier[strings.LastIndexByte(identifier, '/')+1:]
	found := item.containsIdentifier(e.Raw, name)
	if !found && !strings.ContainsFunc(name, mayBeEscaped) {
		return false
	}
	subjects := i.subjects(*item)
	return found && len(subjects) == 0 || slices.Contains(subjects, identifier)
}

// containsIdentifier reports whether the body, path, query or a header contains an identifier,
// ignoring case and the separators of devEUIs and MAC addresses.
func (i *Item) containsIdentifier(body []byte, identifier string) bool {
	eui, err := hex.DecodeString(identifier)
	if err == nil && bytes.Contains(body, []byte(base64.StdEncoding.EncodeToString(eui))) { // as ChirpStack 3 writes it
		return true
	}
	stripped := withoutSeparators([]byte(identifier))
	contains := func(text []byte) bool { return bytes.Contains(withoutSeparators(text), stripped) }
	for _, value := range i.Entry.Headers { // of a submission
		if contains([]byte(value)) {
			return true
		}
	}
	return contains(body) || contains(i.pathAndQuery())
}

// mayBeEscaped reports whether a sender may escape a character of an identifier in JSON or a query.
func mayBeEscaped(r rune) bool {
	return r > unicode.MaxASCII || !unicode.IsLetter(r) && !unicode.IsDigit(r) && !strings.ContainsRune("-_.", r)
}

// pathAndQuery returns the path, and the query as sent and unescaped.
func (i *Item) pathAndQuery() []byte {
	path, _ := url.PathUnescape(i.Entry.Path)
	query, _ := url.QueryUnescape(i.Entry.Query)
	return []byte(path + "\n" + i.Entry.Query + "\n" + query)
}

// withoutSeparators returns a text without hyphens and colons, in lower case.
func withoutSeparators(text []byte) []byte {
	return bytes.ToLower(bytes.ReplaceAll(bytes.ReplaceAll(text, []byte("-"), nil), []byte(":"), nil))
}

func containsFold(text []byte, part string) bool {
	return bytes.Contains(bytes.ToLower(text), bytes.ToLower([]byte(part)))
}
