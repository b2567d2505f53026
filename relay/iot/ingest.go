package iot

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"slices"
	"time"

	"github.com/penstock/penstock/decoders"
	"github.com/penstock/penstock/relay"
)

// Ingest processes a batch of frames and returns the outcome of each. It is
// idempotent: duplicates are dropped, and points of a record that is processed
// again overwrite themselves. The arrivals are its own: it normalizes their frames.
//
// An error, mostly of relay.KindUnavailable, means that a back end did not answer
// and that the whole batch must be retried.
func (s *Service) Ingest(ctx context.Context, arrivals []Arrival) ([]Outcome, error) {
	b := newBatch(arrivals)
	for _, step := range [...]func(context.Context, *batch) error{
		s.refresh, s.check, s.claim, s.identify, s.mergeParts, s.decode, s.save, s.keepFrames, s.evaluateRules, s.countUnmapped,
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
	groups map[relay.AccountID][]*work
	// versions are those of the accounts' records as refresh has found them.
	versions map[relay.AccountID]Version
}

// work is the state of one frame.
type work struct {
	*Arrival
	out         Outcome
	device      *cachedDevice
	at          time.Time
	points      []Point
	radio       *RadioData
	firstRecord string       // the record that brought the frame first, if known
	merged      *MergedFrame // the data of several posts about the frame; nil if there is one
	unmapped    []string     // keys that the decoder does not map
	// limitReason is set if the series limit prevented missing sensors of the device.
	limitReason string
	// decoded is the codec's result, if the frame was decoded with others of its batch
	// before its turn.
	decoded *decoders.Decoded
	// preview means that the frame is not stored and changes nothing.
	preview bool
}

func newBatch(arrivals []Arrival) *batch {
	b := &batch{all: make([]*work, len(arrivals)), groups: make(map[relay.AccountID][]*work, 1)}
	items := make([]work, len(arrivals))
	for i := range arrivals {
		w := &items[i]
		w.Arrival = &arrivals[i]
		b.all[i] = w
	}
	for _, w := range b.all {
		group := b.groups[w.Account]
		if len(b.groups) == 0 {
			group = make([]*work, 0, len(b.all)) // most batches are of one account
		}
		b.groups[w.Account] = append(group, w)
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

// open reports whether the frame is neither refused nor a duplicate.
func (w *work) open() bool { return w.out.Refused == "" && !w.out.Duplicate }

func (w *work) refuse(format string, args ...any) {
	w.out.Refused = fmt.Sprintf(format, args...)
}

// lost records a point that the store refuses for good.
func (w *work) lost(p Point, reason string) {
	w.out.Lost = append(w.out.Lost, p.Key+": "+reason)
	w.out.Points = slices.DeleteFunc(w.out.Points, func(q Point) bool {
		return q.SensorID == p.SensorID && q.Time.Equal(p.Time)
	})
}

func (w *work) note(format string, args ...any) { w.out.Notes.Add(fmt.Sprintf(format, args...)) }

// Limits of a frame's texts, in bytes. Identifiers are tags of the reading stores
// and parts of keys.
const (
	maxIdentifier = 255
	maxName       = 255
	maxDedup      = 128
)

// check refuses frames without an account or a valid device identifier, and
// normalizes the identifiers.
func (s *Service) check(_ context.Context, b *batch) error {
	for _, w := range b.all {
		f := &w.Frame
		f.Identifier, _ = NormalizeIdentifier(f.Identifier)
		f.Name = decoders.Clip(f.Name, maxName)
		switch {
		case w.Account == 0:
			w.refuse("the frame belongs to no account")
		case f.Identifier == "":
			w.refuse("the frame names no device")
		case len(f.Identifier) > maxIdentifier:
			w.refuse("the device's identifier has %d bytes, more than %d", len(f.Identifier), maxIdentifier)
		case !isOneLine(f.Identifier):
			w.refuse("the device's identifier %q has invalid or control characters", f.Identifier)
		}
	}
	return nil
}

// dedupKey identifies a frame among those of its device.
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
	return b.markDuplicates(func(frames []Seen) ([]string, error) {
		return s.safeCache.claim(ctx, frames, s.options.DedupWindow)
	})
}

// markDuplicates marks the frames that another record brought first. firstRecords
// returns for each frame the record that did.
func (b *batch) markDuplicates(firstRecords func([]Seen) ([]string, error)) error {
	frames, of := make([]Seen, 0, len(b.all)), make([]*work, 0, len(b.all))
	for _, w := range b.all {
		if w.Frame.DedupID != "" && w.open() {
			frames, of = append(frames, w.seen()), append(of, w)
		}
	}
	if len(frames) == 0 {
		return nil
	}
	first, err := firstRecords(frames)
	if err != nil {
		return fmt.Errorf("iot: check for duplicates: %w", err)
	}
	for i, w := range of {
		if w.firstRecord = first[i]; first[i] != w.Record {
			w.out.Duplicate, w.out.Repeats = true, first[i]
		}
	}
	return nil
}

// seen returns the key of the frame for the duplicate check.
func (a *Arrival) seen() Seen {
	s := Seen{Account: a.Account, Device: a.Frame.Identifier, Dedup: dedupKey(&a.Frame), Record: a.Record}
	if s.Span = a.Frame.DedupSpan; s.Span > 0 {
		s.At, _ = SampleTime(&a.Frame, a.ReceivedAt)
	}
	return s
}

// Repeats reports whether an arrival is the same frame as another one of its
// device.
func (a *Arrival) Repeats(other *Arrival) bool {
	s, o := a.seen(), other.seen()
	return a.Frame.DedupID != "" && s.Dedup == o.Dedup && s.Near(o.At)
}
