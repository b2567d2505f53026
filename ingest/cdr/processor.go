package cdr

import (
	"context"
	"errors"
	"fmt"

	"github.com/penstock/penstock/decoders"
	"github.com/penstock/penstock/decoders/cdr"
	"github.com/penstock/penstock/ingest/intake"
	"github.com/penstock/penstock/relay/event"
	"github.com/penstock/penstock/relay/sip"
	"github.com/penstock/penstock/relay/usage"
)

// Calls saves records of calls; sip.Calls implements it.
type Calls interface {
	Put(ctx context.Context, records []sip.Record) error
}

// Meter saves and counts records of SIM usage; *usage.Meter implements it.
type Meter interface {
	// Take returns the indexes of the records whose account has no such SIM.
	Take(ctx context.Context, records []usage.Record) (unknown []int, err error)
}

// Processor saves the records of journalled posts. It implements intake.Processor.
type Processor struct {
	store Calls
	meter Meter
}

// NewProcessor returns a Processor.
func NewProcessor(c Calls, m Meter) *Processor { return &Processor{store: c, meter: m} }

const (
	// maxBatch bounds the records of a transaction.
	maxBatch = 20_000
	// maxReported is how many records of unknown SIMs are named.
	maxReported = 20
)

// Process parses each post again and saves its records; those of an earlier attempt are
// saved already.
func (p *Processor) Process(ctx context.Context, items []intake.Item) ([]event.Status, error) {
	b := batch{Processor: p, notes: make([]decoders.Notes, len(items)), problems: make([][]error, len(items))}
	for i := range items {
		b.parse(i, &items[i].Entry)
		if len(b.calls)+len(b.uses) >= maxBatch {
			if err := b.save(ctx); err != nil {
				return nil, err
			}
		}
	}
	if err := b.save(ctx); err != nil {
		return nil, err
	}
	return b.statuses(items), nil
}

// batch is the records of some posts.
type batch struct {
	*Processor
	calls    []sip.Record
	uses     []usage.Record
	posts    []int            // the post of each use
	notes    []decoders.Notes // by post
	problems [][]error        // by post
}

// parse parses a post; its path says which records it has.
func (b *batch) parse(post int, e *intake.Entry) {
	if e.Path == simPath {
		uses, notes, problems := cdr.ParseUses(e.Body)
		for _, u := range uses {
			b.uses, b.posts = append(b.uses, usage.Record{Account: e.Account, Use: u}), append(b.posts, post)
		}
		b.notes[post], b.problems[post] = notes, problems
		return
	}
	calls, notes, problems := cdr.Parse(e.Body)
	for _, c := range calls {
		b.calls = append(b.calls, sip.Record{Account: e.Account, Call: c})
	}
	b.notes[post], b.problems[post] = notes, problems
}

// save saves the records.
func (b *batch) save(ctx context.Context) error {
	if len(b.calls) > 0 {
		if err := b.store.Put(ctx, b.calls); err != nil {
			return err
		}
	}
	if len(b.uses) > 0 {
		unknown, err := b.meter.Take(ctx, b.uses)
		if err != nil {
			return err
		}
		for _, i := range unknown {
			if post := b.posts[i]; len(b.problems[post]) < maxReported {
				b.problems[post] = append(b.problems[post], fmt.Errorf("record %q: the account has no SIM %s", b.uses[i].Use.ID, b.uses[i].Use.ICCID))
			}
		}
	}
	b.calls, b.uses, b.posts = b.calls[:0], b.uses[:0], b.posts[:0]
	return nil
}

// statuses quarantines the posts with a record that was not saved, and has the notes of
// the others.
func (b *batch) statuses(items []intake.Item) []event.Status {
	var statuses []event.Status
	for i, problems := range b.problems {
		if len(problems)+len(b.notes[i]) == 0 {
			continue
		}
		status := items[i].Status(event.Done, "")
		if len(problems) > 0 {
			status = items[i].Status(event.Quarantined, errors.Join(problems...).Error())
		}
		status.Notes = b.notes[i]
		statuses = append(statuses, status)
	}
	return statuses
}
