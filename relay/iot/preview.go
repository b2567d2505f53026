package iot

import (
	"context"
	"time"

	"github.com/penstock/penstock/decoders"
)

// Preview computes the changes that ingesting frames again would make, without
// storing anything. Frames must be passed in the order of their arrival. Not safe
// for concurrent use.
type Preview struct {
	s *Service
	// first holds the first frame of each deduplication key.
	first map[string][]Seen
}

// PreviewedFrame is the expected result of ingesting a frame, compared with the
// stored readings.
type PreviewedFrame struct {
	// Outcome is the one that Ingest would return. Its Points have no sensor and no
	// device if the device would have to be created first.
	Outcome
	Identifier string
	Kind       decoders.FrameKind
	Time       time.Time // of the readings; zero for a frame that is not read
	// Device is the one that sent it; without an ID it would have to be created, and
	// without an identifier none was found. Decoder is the one that reads it.
	Device   Device
	Decoder  Decoder
	Readings []Difference
	// Stored is the frame as rules would see it; nil if they would not look at it.
	Stored *Stored
}

// NewPreview returns an empty preview.
func (s *Service) NewPreview() *Preview {
	return &Preview{s: s, first: make(map[string][]Seen)}
}

// Frames previews a batch. An error means that a back end did not answer.
func (p *Preview) Frames(ctx context.Context, arrivals []Arrival) ([]PreviewedFrame, error) {
	b := newBatch(arrivals)
	for _, w := range b.all {
		w.preview, w.NoDefer = true, true
	}
	for _, step := range [...]func(context.Context, *batch) error{
		p.s.refresh, p.s.check, p.claimed, p.identify, p.s.decode,
	} {
		if err := step(ctx, b); err != nil {
			return nil, err
		}
	}
	out := make([]PreviewedFrame, len(b.all))
	for i, w := range b.all {
		if w.open() {
			w.out.Points = w.points
		}
		out[i] = PreviewedFrame{Outcome: w.out, Identifier: w.Frame.Identifier, Kind: w.Frame.Kind, Time: w.at}
		if w.device != nil {
			out[i].Device = w.device.Device
			if c := w.device.decoder; c != nil {
				out[i].Decoder = c.Decoder
			}
		}
		if w.seenByRules() && w.device.Device.ID != "" {
			stored := w.stored()
			out[i].Stored = &stored
		}
	}
	return out, p.s.differences(ctx, b, out)
}

// claimed marks duplicates as claim does, but claims nothing.
func (p *Preview) claimed(ctx context.Context, b *batch) error {
	return b.markDuplicates(func(frames []Seen) ([]string, error) {
		records, err := p.s.cache.Claimed(ctx, frames, p.s.options.DedupWindow)
		for i := range records {
			records[i] = p.firstRecord(frames[i], records[i])
		}
		return records, err
	})
}

// firstRecord returns the record that a frame belongs to: the one that claimed
// it, else the first one of this preview.
func (p *Preview) firstRecord(f Seen, claimed string) string {
	if claimed != "" {
		return claimed
	}
	key := f.Account.String() + "\x00" + f.Device + "\x00" + f.Dedup
	for _, first := range p.first[key] {
		if f.Near(first.At) {
			return first.Record
		}
	}
	p.first[key] = append(p.first[key], f)
	return f.Record
}

// identify finds the device of every frame, or the one that Ingest would create.
func (p *Preview) identify(ctx context.Context, b *batch) error {
	devices := p.s.newProvisionalDevices()
	for acct, group := range b.groups {
		if err := devices.resolve(ctx, acct, group); err != nil {
			return err
		}
	}
	return nil
}
