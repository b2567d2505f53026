package iot

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"slices"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"

	"github.com/penstock/penstock/decoders"
	"github.com/penstock/penstock/relay/account"
)

// Ingest takes a batch of frames through every step and returns what became of
// each. It stores nothing twice: frames seen before are dropped, and points of
// a record that is processed again overwrite themselves.
//
// An error means that a back end did not answer and that the whole batch has to
// come again; relay.KindUnavailable in most cases.
func (s *Service) Ingest(ctx context.Context, arrivals []Arrival) ([]Outcome, error) {
	b := newBatch(arrivals)
	for _, step := range [...]func(context.Context, *batch) error{
		s.refresh, s.check, s.claim, s.identify, s.join, s.decode, s.save, s.keepFrames,
	} {
		if err := step(ctx, b); err != nil {
			return nil, err
		}
	}
	return b.outcomes(), nil
}

// batch is the frames of one call, grouped by account.
type batch struct {
	all    []*work
	groups map[account.ID][]*work
}

// work is one frame on its way through the steps.
type work struct {
	Arrival
	out    Outcome
	device *profile
	at     time.Time
	points []Point
	uplink *Uplink
	whole  *Whole // what several posts told of the frame; nil when one tells all
	// crowded says that the account has no room for sensors the device lacks.
	crowded string
}

func newBatch(arrivals []Arrival) *batch {
	b := &batch{all: make([]*work, len(arrivals)), groups: make(map[account.ID][]*work, 1)}
	items := make([]work, len(arrivals))
	for i, a := range arrivals {
		w := &items[i]
		w.Arrival = a
		b.all[i] = w
		b.groups[a.Account] = append(b.groups[a.Account], w)
	}
	return b
}

func (b *batch) outcomes() []Outcome {
	out := make([]Outcome, len(b.all))
	for i, w := range b.all {
		out[i] = w.out
	}
	return out
}

// open reports whether the frame still has steps before it.
func (w *work) open() bool { return w.out.Refused == "" && !w.out.Duplicate }

func (w *work) refuse(format string, args ...any) {
	w.out.Refused = fmt.Sprintf(format, args...)
}

// lost records a point that the store will never take.
func (w *work) lost(p Point, reason string) {
	w.out.Lost = append(w.out.Lost, p.Key+": "+reason)
	w.out.Points = slices.DeleteFunc(w.out.Points, func(q Point) bool {
		return q.SensorID == p.SensorID && q.Time.Equal(p.Time)
	})
}

func (w *work) note(format string, args ...any) {
	if w.out.Note != "" {
		w.out.Note += "; "
	}
	w.out.Note += fmt.Sprintf(format, args...)
}

// What a frame may say about its device, in bytes. Identifiers are tags of the
// reading stores and parts of keys.
const (
	maxIdentifier = 255
	maxName       = 255
	maxDedup      = 128
)

// check refuses frames that no account or device can be found for, and writes
// identifiers in the form in which devices are kept and claimed.
func (s *Service) check(_ context.Context, b *batch) error {
	for _, w := range b.all {
		f := &w.Frame
		f.Identifier, _ = NormalizeIdentifier(f.Identifier)
		f.Name = clip(f.Name, maxName)
		switch {
		case w.Account == 0:
			w.refuse("the frame belongs to no account")
		case f.Identifier == "":
			w.refuse("the frame names no device")
		case len(f.Identifier) > maxIdentifier:
			w.refuse("the device's identifier has %d bytes, more than %d", len(f.Identifier), maxIdentifier)
		case !utf8.ValidString(f.Identifier) || strings.ContainsFunc(f.Identifier, unicode.IsControl):
			w.refuse("the device's identifier %q is no text", f.Identifier)
		}
	}
	return nil
}

// dedupKey tells a frame from the others of its device.
func dedupKey(f *decoders.Frame) string { return string(f.Kind) + boundedDedup(f) }

// boundedDedup is a frame's DedupID in bounded length.
func boundedDedup(f *decoders.Frame) string {
	if len(f.DedupID) > maxDedup {
		sum := sha256.Sum256([]byte(f.DedupID))
		return hex.EncodeToString(sum[:])
	}
	return f.DedupID
}

// claim drops the frames that an earlier record brought.
func (s *Service) claim(ctx context.Context, b *batch) error {
	for acct, group := range b.groups {
		var frames []Seen
		var of []*work
		for _, w := range group {
			if w.Frame.DedupID == "" || !w.open() {
				continue
			}
			frames = append(frames, Seen{Device: w.Frame.Identifier, Dedup: dedupKey(&w.Frame), Record: w.Record})
			of = append(of, w)
		}
		if len(frames) == 0 {
			continue
		}
		first, err := s.cached.claim(ctx, acct, frames, s.options.DedupWindow)
		if err != nil {
			return fmt.Errorf("iot: check for duplicates: %w", err)
		}
		for i, w := range of {
			w.out.Duplicate = first[i] != w.Record
		}
	}
	return nil
}
