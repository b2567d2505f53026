package intake

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"golang.org/x/sync/semaphore"

	"github.com/penstock/penstock/ingest/journal"
	"github.com/penstock/penstock/relay"
	"github.com/penstock/penstock/relay/event"
	"github.com/penstock/penstock/relay/tracing"
)

// Item is an entry passed to the processor.
type Item struct {
	ID    string // "<node>-<first letter of the kind><sequence>"
	Seq   uint64
	Entry Entry
	// ProcessNow means that the entry must not be deferred: no other entries wait for it.
	ProcessNow bool
	// SkipRules means that rules do not evaluate the entry, because it is replayed.
	SkipRules bool
	// WaitForEarlier waits until all batches that were read before the entry's batch have
	// ended, for effects that depend on the order; nil if there are none.
	WaitForEarlier func(ctx context.Context) error
	// Trace is the span in which the entry is processed; empty for none.
	Trace tracing.Parent

	content any // the T that Processor[T].Parse returned
	span    *tracing.Active
}

// Status returns a status for the item's event.
func (i *Item) Status(s event.State, reason string) event.Status {
	return event.Status{ID: i.ID, Seq: i.Seq, State: s, Reason: reason, Account: i.Entry.Account, Source: i.Entry.Source}
}

// ParsedItem is an item with its content.
type ParsedItem[T any] struct {
	*Item
	Content T
}

// Processor reads entries as values of type T, and processes them.
type Processor[T any] interface {
	// Parse reads an entry, once before it is processed and once for each description. Of
	// two entries with a common key, the later is processed after the earlier, unless that is
	// deferred. Keys are hashes; a collision only delays an entry. An error, or a panic,
	// quarantines the entry.
	Parse(item *Item) (content T, keys []uint64, err error)

	// Process processes entries.
	//
	// The entries of one call are in journal order. Calls may overlap, and repeat
	// after a crash or in a replay. Process returns the status of each entry that is
	// quarantined, unrouted or pending, or done with an outcome or notes. An entry
	// without a status is done. A Provisional status may be caused by an earlier entry that
	// is still being processed; its entry is then processed again. An event.Pending status
	// defers its entry: the entry is processed again with ProcessNow, alternating with entries
	// of other accounts. An error of relay.KindUnavailable means that a back end is down:
	// the batch is retried until it succeeds. After any other error the batch is
	// bisected, and the entries that fail are quarantined.
	Process(ctx context.Context, items []ParsedItem[T]) ([]event.Status, error)

	// Describe describes an entry in one line; the description may be empty.
	Describe(item ParsedItem[T]) string
}

// Subjecter is a Processor that returns the subjects of an entry; see event.Filter.Match.
// Entries of other processors have no subjects.
type Subjecter[T any] interface {
	Subjects(item ParsedItem[T]) []string
}

// untypedProcessor is a Processor[T] without its type parameter, so that Intake needs none.
// parse sets Item.content; the other functions read it.
type untypedProcessor struct {
	parse    func(item *Item) (keys []uint64, err error)
	process  func(ctx context.Context, items []Item) ([]event.Status, error)
	describe func(item *Item) string
	subjects func(item *Item) []string
}

// Options configures an Intake; the zero value works.
type Options struct {
	Batch   int // maximum entries per call; 0 means 5000
	Workers int // concurrent calls; 0 means 2
	// Linger is the time for which entries accumulate under load before a batch is read,
	// because a store writes 1,000 points in the time of 100. There is no delay after a
	// batch of 64 entries or fewer. 0 means 100 ms; a negative value disables Linger.
	Linger time.Duration
	// Backlog is the number of waiting entries up to which acceptance has priority
	// over processing; 0 means 500,000.
	Backlog uint64
	// MaxAttempts is the number of attempts after which an entry that fails by itself is
	// quarantined; 0 means 3. Attempts that failed because a back end was down do not count.
	// Replays and deferred entries have one attempt.
	MaxAttempts int
	// OnCompleted, if not nil, is called for every entry that was processed, quarantined or
	// deferred, with the time since it was accepted.
	OnCompleted func(took time.Duration)
	// Tracer begins the spans of entries; nil begins none.
	Tracer *tracing.Tracer
	Logger *slog.Logger
	Now    func() time.Time
}

// Intake accepts and processes one kind of traffic.
type Intake struct {
	kind                event.Kind
	node                string
	log                 *journal.Log
	consumer            *journal.Consumer
	statuses            *event.Statuses
	processor           untypedProcessor
	options             Options
	logger              *slog.Logger
	buffers             sync.Pool
	outage              atomic.Pointer[error]  // the error that blocks processing; nil if there is none
	refusal             atomic.Pointer[string] // the reason for refusing entries; nil if they are accepted
	accepted            atomic.Uint64
	processed           atomic.Uint64
	quarantined         atomic.Uint64
	deferred            atomic.Uint64
	deferredWhenDrained atomic.Pointer[uint64] // the value of deferred at which all deferred entries were last processed; nil if never
	memory              *semaphore.Weighted    // the weight of the batches that Run processes
	large               *semaphore.Weighted    // the size of the large entries that are being written
	recentSenders       recentSenders
	lastSeqAtStart      atomic.Uint64 // the sequence of the last entry that may have been processed before the start
	// deferredReady receives a signal when entries were deferred.
	deferredReady chan struct{}
}

// New returns an intake that writes entries of a kind to log and passes them to p. Run starts
// processing.
func New[T any](kind event.Kind, node string, log *journal.Log, statuses *event.Statuses, p Processor[T], o Options) (*Intake, error) {
	consumer, err := log.Consumer("processor")
	if err != nil {
		return nil, fmt.Errorf("intake %s: consumer: %w", kind, err)
	}
	o.Backlog = cmp.Or(o.Backlog, 500_000)
	o.Linger = cmp.Or(o.Linger, 100*time.Millisecond)
	o.Batch, o.Workers, o.MaxAttempts = cmp.Or(o.Batch, 5000), cmp.Or(o.Workers, 2), cmp.Or(o.MaxAttempts, 3)
	o.Logger = cmp.Or(o.Logger, slog.Default())
	if o.Now == nil {
		o.Now = time.Now
	}
	erased := untypedProcessor{
		parse: func(item *Item) ([]uint64, error) {
			content, keys, err := p.Parse(item)
			item.content = content
			return keys, err
		},
		process: func(ctx context.Context, items []Item) ([]event.Status, error) {
			parsed := make([]ParsedItem[T], len(items))
			for n := range items {
				parsed[n] = ParsedItem[T]{&items[n], items[n].content.(T)}
			}
			return p.Process(ctx, parsed)
		},
		describe: func(item *Item) string { return p.Describe(ParsedItem[T]{item, item.content.(T)}) },
		subjects: func(*Item) []string { return nil },
	}
	if s, ok := p.(Subjecter[T]); ok {
		erased.subjects = func(item *Item) []string { return s.Subjects(ParsedItem[T]{item, item.content.(T)}) }
	}
	return &Intake{
		kind: kind, node: node, log: log, consumer: consumer, statuses: statuses, processor: erased, options: o,
		logger:        o.Logger.With("kind", string(kind)),
		memory:        semaphore.NewWeighted(maxWeight),
		large:         semaphore.NewWeighted(maxLarge),
		buffers:       sync.Pool{New: func() any { return new([]byte) }},
		deferredReady: make(chan struct{}, 1),
	}, nil
}

// ErrFull is returned by Accept if the journal is full.
var ErrFull = journal.ErrFull

// ErrTooLarge is returned by Accept for an entry that exceeds the journal's limit.
var ErrTooLarge = journal.ErrTooLarge

// Entries with a body above largeBody are written to the journal while their sizes add up to at
// most maxLarge bytes; further large entries wait. Small entries do not wait: they share the disk
// with at most maxLarge bytes of large entries.
const (
	largeBody = 64 << 10
	maxLarge  = 1 << 20
)

// Accept writes an entry to the journal. When Accept returns an id, the entry is on
// disk and will be processed, even after a crash. Accept does not retain e.
func (i *Intake) Accept(ctx context.Context, e *Entry) (string, error) {
	if size := int64(min(len(e.Body), maxLarge)); size > largeBody {
		if err := i.large.Acquire(ctx, size); err != nil {
			return "", relay.Errorf(relay.KindUnavailable, "intake %s: %w", i.kind, err)
		}
		defer i.large.Release(size)
	}
	s, err := i.Stage(ctx, e)
	if err != nil {
		return "", err
	}
	return s.Wait(ctx)
}

// StagedEntry is an entry that has a sequence in the journal and may not be on disk yet.
type StagedEntry struct {
	intake  *Intake
	pending journal.Pending
	span    *tracing.Active
}

// Refuse makes Accept and Stage refuse every later entry with an error of
// relay.KindUnavailable.
func (i *Intake) Refuse(reason string) { i.refusal.Store(&reason) }

// Stage is the first half of Accept, for callers that accept many entries
// concurrently in a fixed order: entries are ordered by call. Stage does not
// retain e.
func (i *Intake) Stage(ctx context.Context, e *Entry) (StagedEntry, error) {
	if reason := i.refusal.Load(); reason != nil {
		return StagedEntry{}, relay.Errorf(relay.KindUnavailable, "intake %s: %s", i.kind, *reason)
	}
	var span *tracing.Active // child of the request's span; nil if the request has none
	if i.options.Tracer != nil {
		span = i.options.Tracer.Continue(tracing.FromContext(ctx), "journal "+string(i.kind), tracing.Producer, i.options.Now())
	}
	e.Trace = span.Parent()
	buf := i.buffers.Get().(*[]byte)
	defer i.buffers.Put(buf)
	*buf = e.Append((*buf)[:0])
	p, err := i.log.Stage(ctx, *buf)
	if err != nil {
		span.End(i.options.Now(), err.Error())
		return StagedEntry{}, fmt.Errorf("intake %s: %w", i.kind, err)
	}
	return StagedEntry{i, p, span}, nil
}

// Wait is the second half of Accept: when Wait returns an id, the entry is on disk.
func (s StagedEntry) Wait(ctx context.Context) (string, error) {
	seq, err := s.pending.Wait(ctx)
	if err != nil {
		s.span.End(s.intake.options.Now(), err.Error())
		return "", fmt.Errorf("intake %s: %w", s.intake.kind, err)
	}
	s.intake.accepted.Add(1)
	id := s.intake.id(seq)
	s.span.Set("penstock.event", id)
	s.span.End(s.intake.options.Now(), "")
	return id, nil
}

func (i *Intake) id(seq uint64) string {
	var space [48]byte // enough for most ids, so that only the string is allocated
	b := append(append(space[:0], i.node...), '-', i.kind[0])
	return string(strconv.AppendUint(b, seq, 10))
}

// Sequence returns the sequence of an id of this intake.
func (i *Intake) Sequence(id string) (uint64, bool) {
	digits, ok := strings.CutPrefix(id, i.node+"-"+string(i.kind[:1]))
	if !ok {
		return 0, false
	}
	seq, err := strconv.ParseUint(digits, 10, 64)
	return seq, err == nil && seq > 0
}

// Kind returns the kind of traffic.
func (i *Intake) Kind() event.Kind { return i.kind }

// Status is a snapshot of an intake.
type Status struct {
	Journal     journal.Stats
	Lag         uint64 // entries accepted and not processed yet
	Outage      string // the error that blocks processing; empty if there is none
	Accepted    uint64 // since the start
	Processed   uint64
	Quarantined uint64
	Deferred    uint64
}

// Status returns a snapshot of the intake.
func (i *Intake) Status() Status {
	s := Status{
		Journal: i.log.Stats(), Accepted: i.accepted.Load(),
		Processed: i.processed.Load(), Quarantined: i.quarantined.Load(), Deferred: i.deferred.Load(),
	}
	if lastSeq, committed := s.Journal.Last, i.consumer.Committed(); lastSeq > committed {
		s.Lag = lastSeq - committed
	}
	if err := i.outage.Load(); err != nil {
		s.Outage = (*err).Error()
	}
	return s
}

// Committed returns the sequence up to which all entries are processed.
func (i *Intake) Committed() uint64 { return i.consumer.Committed() }

// DurableSeq returns the sequence up to which the effects of all entries, including deferred
// ones, are durable in every back end. ok is false while deferred entries may remain.
func (i *Intake) DurableSeq() (seq uint64, ok bool) {
	seq = i.consumer.Committed() // first: an entry is deferred before the checkpoint passes it
	deferred := i.deferredWhenDrained.Load()
	return seq, deferred != nil && *deferred == i.deferred.Load()
}

// Revert moves the checkpoint back to seq, so that Run processes the later entries again.
// Revert returns the number of the later entries that are still in the journal, and the
// sequence of the first of them. It must not be called while Run runs.
func (i *Intake) Revert(seq uint64) (count, firstSeq uint64, err error) {
	committed := i.consumer.Committed()
	if seq >= committed {
		return 0, seq + 1, nil
	}
	firstSeq = max(seq+1, i.log.Stats().First)
	return committed - min(committed, firstSeq-1), firstSeq, i.consumer.Revert(seq)
}

// Gaps returns the damaged ranges of the journal, which processing skips.
func (i *Intake) Gaps() []journal.Gap { return i.log.Gaps() }

// Drained reports whether every readable entry is processed and none is deferred. The lag
// may still be above zero if entries at the end of the journal are damaged.
func (i *Intake) Drained(ctx context.Context) (bool, error) {
	errFound := errors.New("unprocessed entry")
	err := i.log.Range(ctx, i.consumer.Committed()+1, i.log.Stats().Last, func(journal.Record) error { return errFound })
	if errors.Is(err, errFound) {
		return false, nil
	}
	if err != nil {
		return false, fmt.Errorf("intake %s: %w", i.kind, err)
	}
	deferred, err := i.statuses.Deferred(ctx, i.kind, noAccount, 1)
	return err == nil && len(deferred) == 0, err
}

// Blocked reports whether processing is blocked by a back end that is down.
func (i *Intake) Blocked() bool { return i.outage.Load() != nil }

// Trim deletes the statuses of entries whose records are deleted.
func (i *Intake) Trim(ctx context.Context) error {
	return i.statuses.Trim(ctx, i.kind, i.log.Stats().First)
}

// item decodes a record. The caller quarantines a record that cannot be decoded, for example
// because another version wrote it.
func (i *Intake) item(r journal.Record) (Item, error) { return i.itemAfter(r, &Entry{}) }

// itemAfter decodes the record that follows the previous entry; see parseEntry.
func (i *Intake) itemAfter(r journal.Record, previous *Entry) (Item, error) {
	item := Item{ID: i.id(r.Seq), Seq: r.Seq}
	e, err := parseEntry(r.Payload, previous)
	e.ReceivedAt = r.Time
	item.Entry = e
	return item, err
}

// stopping reports whether err is due to the end of ctx or a closed journal.
func stopping(ctx context.Context, err error) bool {
	return ctx.Err() != nil || errors.Is(err, journal.ErrClosed)
}
