package cdr

import (
	"context"
	"errors"

	"github.com/penstock/penstock/decoders/cdr"
	"github.com/penstock/penstock/ingest/intake"
	"github.com/penstock/penstock/relay/event"
	"github.com/penstock/penstock/relay/sip"
)

// Keeper keeps records; sip.Calls does.
type Keeper interface {
	Put(ctx context.Context, records []sip.Record) error
}

// Processor brings journalled posts to the records. It is an intake.Processor.
type Processor struct{ keeper Keeper }

// NewProcessor returns a Processor.
func NewProcessor(k Keeper) *Processor { return &Processor{keeper: k} }

// most is how many records are kept at one time, which bounds a transaction.
const most = 20_000

// Process reads each post again and keeps its records; those of an earlier try
// or a replay are there already.
func (p *Processor) Process(ctx context.Context, items []intake.Item) ([]event.Mark, error) {
	var marks []event.Mark
	var records []sip.Record
	for i := range items {
		it := &items[i]
		calls, problems := cdr.Parse(it.Entry.Body)
		for _, c := range calls {
			records = append(records, sip.Record{Account: it.Entry.Account, Call: c})
		}
		if len(problems) > 0 {
			marks = append(marks, event.Mark{
				ID: it.ID, Seq: it.Seq, State: event.Quarantined, Reason: errors.Join(problems...).Error(),
				Account: it.Entry.Account, Source: it.Entry.Source,
			})
		}
		if len(records) >= most {
			if err := p.keeper.Put(ctx, records); err != nil {
				return nil, err
			}
			records = records[:0]
		}
	}
	return marks, p.keeper.Put(ctx, records)
}
