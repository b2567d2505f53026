package iot

import (
	"context"
	"fmt"

	"github.com/penstock/penstock/relay/account"
)

// Rehearsal tells what ingesting frames again would change, and changes
// nothing. Its frames have to be given in the order of their arrival; it is for
// one goroutine.
type Rehearsal struct {
	s *Service
	// first holds the record that brought a frame first.
	first map[string]string
}

// Foretold is what Ingest would make of a frame, and how that differs from what
// is stored.
type Foretold struct {
	// Outcome is as Ingest would give it; its Points have no sensor and no
	// device where the device would have to be made first.
	Outcome
	Identifier string
	Readings   []Difference
}

// Rehearse begins a rehearsal.
func (s *Service) Rehearse() *Rehearsal {
	return &Rehearsal{s: s, first: make(map[string]string)}
}

// Frames rehearses a batch. An error means that a back end did not answer.
func (r *Rehearsal) Frames(ctx context.Context, arrivals []Arrival) ([]Foretold, error) {
	b := newBatch(arrivals)
	for _, step := range [...]func(context.Context, *batch) error{
		r.s.refresh, r.s.check, r.claimed, r.lodge, r.s.decode,
	} {
		if err := step(ctx, b); err != nil {
			return nil, err
		}
	}
	out := make([]Foretold, len(b.all))
	for i, w := range b.all {
		if w.open() {
			w.out.Points = w.points
		}
		out[i] = Foretold{Outcome: w.out, Identifier: w.Frame.Identifier}
	}
	return out, r.s.differences(ctx, b, out)
}

// claimed drops the frames that another record brought, as claim does.
func (r *Rehearsal) claimed(ctx context.Context, b *batch) error {
	for acct, group := range b.groups {
		var frames []Seen
		var of []*work
		for _, w := range group {
			if w.Frame.DedupID != "" && w.open() {
				frames = append(frames, Seen{Device: w.Frame.Identifier, Dedup: dedupKey(&w.Frame), Record: w.Record})
				of = append(of, w)
			}
		}
		if len(frames) == 0 {
			continue
		}
		holders, err := r.s.cache.Claimed(ctx, acct, frames, r.s.options.DedupWindow)
		if err != nil {
			return fmt.Errorf("iot: check for duplicates: %w", err)
		}
		for i, w := range of {
			w.out.Duplicate = r.holder(acct, frames[i], holders[i]) != w.Record
		}
	}
	return nil
}

// holder is the record that a frame belongs to: the one that claimed it, else
// the first of this rehearsal.
func (r *Rehearsal) holder(acct account.ID, f Seen, claimed string) string {
	if claimed != "" {
		return claimed
	}
	key := acct.String() + "\x00" + f.Device + "\x00" + f.Dedup
	if first, ok := r.first[key]; ok {
		return first
	}
	r.first[key] = f.Record
	return f.Record
}

func (r *Rehearsal) lodge(ctx context.Context, b *batch) error {
	l := r.s.newLodging()
	for acct, group := range b.groups {
		if err := l.group(ctx, acct, group); err != nil {
			return err
		}
	}
	return nil
}
