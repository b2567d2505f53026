package cdr

import (
	"context"
	"errors"
	"fmt"

	"github.com/penstock/penstock/decoders/cdr"
	"github.com/penstock/penstock/ingest/intake"
	"github.com/penstock/penstock/relay/event"
	"github.com/penstock/penstock/relay/sip"
	"github.com/penstock/penstock/relay/usage"
)

// Keeper keeps records of calls; sip.Calls does.
type Keeper interface {
	Put(ctx context.Context, records []sip.Record) error
}

// Meter keeps and counts records of what SIMs used; *usage.Meter does.
type Meter interface {
	// Take returns the indexes of those whose account has no such SIM.
	Take(ctx context.Context, records []usage.Record) (unknown []int, err error)
}

// Processor brings journalled posts to the records. It is an intake.Processor.
type Processor struct {
	keeper Keeper
	meter  Meter
}

// NewProcessor returns a Processor.
func NewProcessor(k Keeper, m Meter) *Processor { return &Processor{keeper: k, meter: m} }

const (
	// most is how many records are kept at one time, which bounds a transaction.
	most = 20_000
	// maxReported is how many records of SIMs that the account does not have are named.
	maxReported = 20
)

// Process reads each post again and keeps its records; those of an earlier try
// or a replay are there already.
func (p *Processor) Process(ctx context.Context, items []intake.Item) ([]event.Status, error) {
	b := batch{Processor: p, problems: make([][]error, len(items))}
	for i := range items {
		b.read(i, &items[i].Entry)
		if len(b.calls)+len(b.uses) >= most {
			if err := b.keep(ctx); err != nil {
				return nil, err
			}
		}
	}
	if err := b.keep(ctx); err != nil {
		return nil, err
	}
	return b.statuses(items), nil
}

// batch is what is read of some posts.
type batch struct {
	*Processor
	calls    []sip.Record
	uses     []usage.Record
	posts    []int     // of uses: the post that each came in
	problems [][]error // by post
}

// read reads a post; its path says of what.
func (b *batch) read(post int, e *intake.Entry) {
	if e.Path == simPath {
		uses, problems := cdr.ParseUses(e.Body)
		for _, u := range uses {
			b.uses, b.posts = append(b.uses, usage.Record{Account: e.Account, Use: u}), append(b.posts, post)
		}
		b.problems[post] = problems
		return
	}
	calls, problems := cdr.Parse(e.Body)
	for _, c := range calls {
		b.calls = append(b.calls, sip.Record{Account: e.Account, Call: c})
	}
	b.problems[post] = problems
}

// keep keeps what was read.
func (b *batch) keep(ctx context.Context) error {
	if len(b.calls) > 0 {
		if err := b.keeper.Put(ctx, b.calls); err != nil {
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

// statuses quarantines the posts of which something was not kept.
func (b *batch) statuses(items []intake.Item) []event.Status {
	var statuses []event.Status
	for i, problems := range b.problems {
		if len(problems) > 0 {
			it := &items[i]
			statuses = append(statuses, event.Status{
				ID: it.ID, Seq: it.Seq, State: event.Quarantined, Reason: errors.Join(problems...).Error(),
				Account: it.Entry.Account, Source: it.Entry.Source,
			})
		}
	}
	return statuses
}
