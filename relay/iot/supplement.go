package iot

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/penstock/penstock/decoders"
)

// Part is what one post tells of a frame of which several posts may tell.
type Part struct {
	Device, Dedup string
	// At is the time that the frame is stored under. A post that only adds to
	// the frame has none.
	At       time.Time
	Gateways []decoders.Gateway
	Position *decoders.Position
}

// Whole is what all posts have told of a frame so far.
type Whole struct {
	At       time.Time          // zero while the frame itself has not come
	Gateways []decoders.Gateway // with identifier, RSSI and SNR only
	Position *decoders.Position
}

// heard returns the receptions. One without a name is the best of those that
// the network names later.
func (w *Whole) heard() []decoders.Gateway {
	named := slices.DeleteFunc(slices.Clone(w.Gateways), func(g decoders.Gateway) bool { return g.ID == "" })
	if len(named) > 0 {
		return named
	}
	return w.Gateways
}

// joins reports whether what a post tells goes together with what others tell,
// also when the frame itself was seen before.
func (w *work) joins() bool {
	f := &w.Frame
	return w.out.Refused == "" && f.DedupID != "" && (f.Supplement || f.Extensible) && !f.Simulated
}

// join puts together what several posts tell of a frame, whichever comes first.
func (s *Service) join(ctx context.Context, b *batch) error {
	for acct, group := range b.groups {
		var parts []Part
		var of []*work
		for _, w := range group {
			if w.joins() {
				parts, of = append(parts, w.part()), append(of, w)
			}
		}
		if len(parts) == 0 {
			continue
		}
		wholes, err := s.cached.join(ctx, acct, parts, s.options.DedupWindow)
		if err != nil {
			return fmt.Errorf("iot: join what was told of a frame: %w", err)
		}
		for i := range wholes {
			of[i].whole = &wholes[i]
		}
	}
	return nil
}

func (w *work) part() Part {
	f := &w.Frame
	p := Part{Device: f.Identifier, Dedup: boundedDedup(f), Gateways: f.Gateways, Position: f.Position}
	if f.Kind == decoders.Uplink && w.open() {
		p.At, _ = SampleTime(f, w.ReceivedAt)
	}
	return p
}

// addition is what a post adds to the radio side of a frame, nil for nothing. It
// is stored under the frame's time. Where that is not known, since the frame has
// not come or the cache has lost it, a post without the payload is stored under
// its own, which the networks make the same; one with the payload has become the
// frame itself.
func (w *work) addition() *Uplink {
	whole := Whole{Gateways: w.Frame.Gateways, Position: w.Frame.Position}
	if w.whole != nil {
		whole = *w.whole
	}
	if whole.At.IsZero() {
		if !w.joins() || w.Frame.Kind == decoders.Uplink || w.Frame.NetworkTime.IsZero() {
			return nil
		}
		whole.At, _ = SampleTime(&w.Frame, w.ReceivedAt)
	}
	u := w.bare(whole.At)
	u.receptions(whole.heard())
	u.place(whole.Position)
	return u.orNil()
}
