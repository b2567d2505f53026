package iot

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/penstock/penstock/decoders"
)

// FramePart is the data of one post about a frame that several posts describe.
type FramePart struct {
	Device, Dedup string
	// At is the time under which the frame is stored; zero for a post that only
	// supplements the frame.
	At       time.Time
	Gateways []decoders.Gateway
	Position *decoders.Position
}

// MergedFrame merges the data of all posts about a frame so far.
type MergedFrame struct {
	At       time.Time          // zero until the frame itself arrives
	Gateways []decoders.Gateway // with identifier, RSSI and SNR only
	Position *decoders.Position
}

// receptions returns the gateways that received the frame. One without an id is
// the best of those that the network names later, so it counts only until then.
func (m *MergedFrame) receptions() []decoders.Gateway {
	named := slices.DeleteFunc(slices.Clone(m.Gateways), func(g decoders.Gateway) bool { return g.ID == "" })
	if len(named) > 0 {
		return named
	}
	return m.Gateways
}

// merges reports whether a post is merged with other posts about the same frame,
// even if the frame itself is a duplicate.
func (w *work) merges() bool {
	f := &w.Frame
	return w.out.Refused == "" && f.DedupID != "" && (f.Supplement || f.Extensible) && !f.Simulated
}

// mergeParts merges the data of several posts about a frame, in any order.
func (s *Service) mergeParts(ctx context.Context, b *batch) error {
	for acct, group := range b.groups {
		var parts []FramePart
		var of []*work
		for _, w := range group {
			if w.merges() {
				parts, of = append(parts, w.framePart()), append(of, w)
			}
		}
		if len(parts) == 0 {
			continue
		}
		merged, err := s.safeCache.mergeParts(ctx, acct, parts, s.options.DedupWindow)
		if err != nil {
			return fmt.Errorf("iot: merge posts of a frame: %w", err)
		}
		for i := range merged {
			of[i].merged = &merged[i]
		}
	}
	return nil
}

func (w *work) framePart() FramePart {
	f := &w.Frame
	p := FramePart{Device: f.Identifier, Dedup: boundedDedup(f), Gateways: f.Gateways, Position: f.Position}
	if f.DedupSpan > 0 {
		p.Dedup += "@" + w.firstRecord // another frame may have the same key
	}
	if f.Kind == decoders.Uplink && w.open() {
		p.At, _ = SampleTime(f, w.ReceivedAt)
	}
	return p
}

// supplement returns the radio data that a post adds to a frame, or nil. It is
// stored under the frame's time. If that time is unknown, because the frame has not
// arrived or the cache has lost it, a post without the payload is stored under its
// own time, which is the same in the networks; a post with the payload is stored as
// the frame itself.
func (w *work) supplement() *RadioData {
	frame := MergedFrame{Gateways: w.Frame.Gateways, Position: w.Frame.Position}
	if w.merged != nil {
		frame = *w.merged
	}
	if frame.At.IsZero() {
		if !w.merges() || w.Frame.Kind == decoders.Uplink || w.Frame.NetworkTime.IsZero() {
			return nil
		}
		frame.At, _ = SampleTime(&w.Frame, w.ReceivedAt)
	}
	u := w.bare(frame.At)
	u.receptions(frame.receptions())
	u.place(frame.Position)
	return u.orNil()
}
