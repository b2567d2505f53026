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

	"github.com/penstock/penstock/ingest/journal"
	"github.com/penstock/penstock/relay/event"
)

// Item is an entry on its way through the processor.
type Item struct {
	ID    string // "<node>-<first letter of the kind><sequence>"
	Seq   uint64
	Entry Entry
	// Prepared is what an Orderly processor has found out already.
	Prepared any
}

// Processor brings entries to their effects.
//
// Process is called with entries in the order of the journal, possibly again
// after a crash or in a replay, and by several goroutines at once. It returns
// marks for the entries it set aside; one that is Early is given again where an
// earlier entry, still in the works, may be the reason. An error of relay.KindUnavailable means
// that a back end is down: the batch comes again until it works. Any other
// error is looked into entry by entry, and the culprits are set aside.
type Processor interface {
	Process(ctx context.Context, items []Item) ([]event.Mark, error)
}

// Options are what may be chosen; the zero value works.
type Options struct {
	Batch   int // the most entries per call; 0 means 1000
	Workers int // calls at a time; 0 means 2
	// Linger is how long entries gather under load before they are taken: a
	// store does a thousand points in the time of a hundred. Light traffic never
	// waits. 0 means 20 ms; negative, never.
	Linger time.Duration
	// Backlog is how many entries may wait while acceptance goes first; 0 means
	// 500,000.
	Backlog uint64
	// Patience is how often an entry that fails for a reason of its own is
	// tried before it is set aside; 0 means 3.
	Patience int
	Logger   *slog.Logger
	Now      func() time.Time
}

// Intake is the way in of one kind of traffic.
type Intake struct {
	kind      event.Kind
	node      string
	log       *journal.Log
	consumer  *journal.Consumer
	marks     event.Marks
	processor Processor
	options   Options
	logger    *slog.Logger
	buffers   sync.Pool
	trouble   atomic.Pointer[error] // why the consumer waits
	accepted  atomic.Uint64
	processed atomic.Uint64
	setAside  atomic.Uint64
}

// New returns the intake of a kind over its journal. Run starts processing.
func New(kind event.Kind, node string, log *journal.Log, marks event.Marks, p Processor, o Options) (*Intake, error) {
	consumer, err := log.Consumer("processor")
	if err != nil {
		return nil, fmt.Errorf("intake %s: consumer: %w", kind, err)
	}
	o.Backlog = cmp.Or(o.Backlog, 500_000)
	o.Linger = cmp.Or(o.Linger, 100*time.Millisecond)
	o.Batch, o.Workers, o.Patience = cmp.Or(o.Batch, 5000), cmp.Or(o.Workers, 2), cmp.Or(o.Patience, 3)
	if o.Now == nil {
		o.Now = time.Now
	}
	if o.Logger == nil {
		o.Logger = slog.Default()
	}
	return &Intake{
		kind: kind, node: node, log: log, consumer: consumer, marks: marks, processor: p, options: o,
		logger:  o.Logger.With("kind", string(kind)),
		buffers: sync.Pool{New: func() any { return new([]byte) }},
	}, nil
}

// ErrFull is what Accept answers when the journal cannot take more now.
var ErrFull = journal.ErrFull

// ErrTooLarge is what Accept answers for an entry that no journal takes.
var ErrTooLarge = journal.ErrTooLarge

// Accept writes an entry to the journal. When it returns an id the entry is on
// disk and will be processed, whatever happens. The entry is not kept.
func (i *Intake) Accept(ctx context.Context, e *Entry) (string, error) {
	s, err := i.Stage(ctx, e)
	if err != nil {
		return "", err
	}
	return s.Wait(ctx)
}

// Staged is an entry that has its place in the journal, and is not on disk yet.
type Staged struct {
	intake  *Intake
	pending journal.Pending
}

// Stage is the first half of Accept, for one who has many entries under way and
// must keep their order: it is that of the calls. The entry is not kept.
func (i *Intake) Stage(ctx context.Context, e *Entry) (Staged, error) {
	buf := i.buffers.Get().(*[]byte)
	defer i.buffers.Put(buf)
	*buf = e.Append((*buf)[:0])
	p, err := i.log.Stage(ctx, *buf)
	if err != nil {
		return Staged{}, fmt.Errorf("intake %s: %w", i.kind, err)
	}
	return Staged{i, p}, nil
}

// Wait is the second half: the entry is on disk when it returns an id.
func (s Staged) Wait(ctx context.Context) (string, error) {
	seq, err := s.pending.Wait(ctx)
	if err != nil {
		return "", fmt.Errorf("intake %s: %w", s.intake.kind, err)
	}
	s.intake.accepted.Add(1)
	return s.intake.id(seq), nil
}

func (i *Intake) id(seq uint64) string {
	return i.node + "-" + string(i.kind[:1]) + strconv.FormatUint(seq, 10)
}

// Sequence returns the sequence within an id of this intake.
func (i *Intake) Sequence(id string) (uint64, bool) {
	rest, ok := strings.CutPrefix(id, i.node+"-"+string(i.kind[:1]))
	if !ok {
		return 0, false
	}
	seq, err := strconv.ParseUint(rest, 10, 64)
	return seq, err == nil && seq > 0
}

// Kind returns the kind of traffic.
func (i *Intake) Kind() event.Kind { return i.kind }

// Status is how an intake is doing.
type Status struct {
	Journal   journal.Stats
	Lag       uint64 // entries accepted and not processed yet
	Waiting   string // why the consumer waits; empty when it does not
	Accepted  uint64 // since the start
	Processed uint64
	SetAside  uint64
}

// Status returns how the intake is doing.
func (i *Intake) Status() Status {
	s := Status{
		Journal: i.log.Stats(), Accepted: i.accepted.Load(),
		Processed: i.processed.Load(), SetAside: i.setAside.Load(),
	}
	if last, done := s.Journal.Last, i.consumer.Committed(); last > done {
		s.Lag = last - done
	}
	if err := i.trouble.Load(); err != nil {
		s.Waiting = (*err).Error()
	}
	return s
}

// Committed is the sequence up to which everything was processed.
func (i *Intake) Committed() uint64 { return i.consumer.Committed() }

// Waits reports whether processing waits for a back end.
func (i *Intake) Waits() bool { return i.trouble.Load() != nil }

// Trim forgets the marks of entries whose records are gone.
func (i *Intake) Trim(ctx context.Context) error {
	return i.marks.Trim(ctx, i.kind, i.log.Stats().First)
}

// item reads a record. One that cannot be read has been written by another
// version; it is set aside like any other that fails.
func (i *Intake) item(r journal.Record) (Item, error) {
	it := Item{ID: i.id(r.Seq), Seq: r.Seq}
	e, err := ParseEntry(r.Payload)
	e.ReceivedAt = r.Time
	it.Entry = e
	return it, err
}

// gone reports whether an error only says that the program stops.
func gone(ctx context.Context, err error) bool {
	return ctx.Err() != nil || errors.Is(err, journal.ErrClosed)
}
