package cdr

import (
	"context"
	"errors"
	"fmt"
	"slices"

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
	// maxBatch is the number of records after which a transaction takes no further posts.
	maxBatch = 20_000
	// maxReported is the number of problems of a post after which unknown SIMs are not reported.
	maxReported = 20
)

// post is the content of a journalled post.
type post struct {
	calls    []cdr.Call
	uses     []cdr.Use
	notes    decoders.Notes
	problems []error
}

// Parse reads the records of a post by its path. It returns no keys, because records need no order.
func (p *Processor) Parse(item *intake.Item) (content *post, keys []uint64, err error) {
	content = &post{}
	if item.Entry.Path == simPath {
		content.uses, content.notes, content.problems = cdr.ParseUsage(item.Entry.Body)
	} else {
		content.calls, content.notes, content.problems = cdr.Parse(item.Entry.Body)
	}
	return content, nil, nil
}

// Describe returns the number and the kind of the records.
func (p *Processor) Describe(item intake.ParsedItem[*post]) string {
	if item.Entry.Path == simPath {
		return counted(len(item.Content.uses), "usage record")
	}
	return counted(len(item.Content.calls), "call record")
}

func counted(n int, noun string) string {
	if n != 1 {
		noun += "s"
	}
	return fmt.Sprintf("%d %s", n, noun)
}

// Process saves the records of posts. Records that an earlier attempt has saved are not saved again.
func (p *Processor) Process(ctx context.Context, posts []intake.ParsedItem[*post]) ([]event.Status, error) {
	unknown := make([][]error, len(posts)) // records of unknown SIMs, by post
	var calls []sip.Record
	var uses []usage.Record
	var origins []int // the post of each use
	for i, item := range posts {
		for _, call := range item.Content.calls {
			calls = append(calls, sip.Record{Account: item.Entry.Account, Call: call})
		}
		for _, use := range item.Content.uses {
			uses, origins = append(uses, usage.Record{Account: item.Entry.Account, Use: use}), append(origins, i)
		}
		if len(calls)+len(uses) < maxBatch && i < len(posts)-1 {
			continue
		}
		if len(calls) > 0 {
			if err := p.store.Put(ctx, calls); err != nil {
				return nil, err
			}
		}
		if len(uses) > 0 {
			indexes, err := p.meter.Take(ctx, uses)
			if err != nil {
				return nil, err
			}
			for _, n := range indexes {
				k := origins[n]
				if len(posts[k].Content.problems)+len(unknown[k]) < maxReported {
					unknown[k] = append(unknown[k], fmt.Errorf("record %q: the account has no SIM %s", uses[n].Use.ID, uses[n].Use.ICCID))
				}
			}
		}
		calls, uses, origins = calls[:0], uses[:0], origins[:0]
	}

	// Quarantine posts with a record that was not saved. Other posts may have notes.
	var statuses []event.Status
	for i, item := range posts {
		problems := slices.Concat(item.Content.problems, unknown[i])
		if len(problems)+len(item.Content.notes) == 0 {
			continue
		}
		status := item.Status(event.Done, "")
		if len(problems) > 0 {
			status = item.Status(event.Quarantined, errors.Join(problems...).Error())
		}
		status.Notes = item.Content.notes
		statuses = append(statuses, status)
	}
	return statuses, nil
}
