package iot

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"slices"
	"time"

	"golang.org/x/sync/errgroup"

	"github.com/penstock/penstock/decoders"
	"github.com/penstock/penstock/relay"
	"github.com/penstock/penstock/relay/tracing"
)

// Arrival is a received frame.
type Arrival struct {
	// Record is the id of the event that brought it, with .n if its post has several
	// frames; it makes processing idempotent.
	Record string
	// Post is the same for the frames of one post, which are consecutive and in
	// order; empty for a single frame.
	Post      string
	Account   relay.AccountID
	DecoderID string // from the webhook's decoder_id; may be empty
	// ReceivedAt differs between the frames of one post: it is the time of those
	// that have none of their own.
	ReceivedAt time.Time
	Frame      decoders.Frame
	// Trace is the span of its processing; empty for none.
	Trace tracing.Parent
	// NoDefer means that the frame is never deferred, however long its decoder
	// takes, since no other account's frames wait behind it.
	NoDefer bool
	// NoRules means that rules do not examine the frame: it is replayed.
	NoRules bool
	// WaitForEarlier waits until the batches before this one are done; nil if none are under
	// way. Rules evaluate the frames of a device in their order.
	WaitForEarlier func(ctx context.Context) error
}

// Outcome is the result of processing an Arrival.
type Outcome struct {
	// Refused is the reason why no readings were stored; empty on success. Radio data
	// may have been.
	Refused string
	// Provisional reports that a concurrent frame may change the outcome: an
	// acknowledgement can arrive before its device's first uplink.
	Provisional bool
	// Deferred reports that the frame was not decoded, because the decoding time of the
	// batch was used up or the last call of its codec exceeded a limit: it must be
	// processed again with NoDefer.
	Deferred bool
	// Notes say what of the frame was accepted but not used: values and times that could
	// not be read, warnings of the codec, and why an accepted frame has no readings.
	Notes    decoders.Notes
	DeviceID string
	// Duplicate is set if an earlier record, Repeats, brought the same frame.
	Duplicate bool
	Repeats   string
	// Lost lists values of the frame that were not stored although others may have been,
	// with reasons: refused by the store, beyond a limit, or not a finite number.
	Lost []string
	// Points are the readings that were stored.
	Points []Point
}

// Limits of a frame's time, relative to its receipt.
const (
	oldestSample = 10 * 365 * 24 * time.Hour
	newestSample = 24 * time.Hour
)

// SampleTime returns the time of a frame: the device's, else the network's, else
// the receipt; the first that lies between 10 years before and 24 hours after the
// receipt. The notes name the times that could not be used.
func SampleTime(f *decoders.Frame, received time.Time) (sampleTime time.Time, notes decoders.Notes) {
	sampleTime = received.UTC()
	used := "the time of receipt is used"
	for _, candidate := range [...]struct {
		time time.Time
		used string
	}{{f.SampleTime, "the device's time is used"}, {f.NetworkTime, "the network's time is used"}} {
		if candidate.time.IsZero() {
			continue
		}
		if Plausible(candidate.time, received) {
			sampleTime, used = candidate.time.UTC(), candidate.used
			break
		}
		notes.Add(implausibleNote(candidate.time))
	}
	notes.Add(f.TimeNote)
	for i := range notes {
		notes[i] += "; " + used
	}
	return sampleTime, notes
}

func implausibleNote(t time.Time) string {
	return "time " + t.UTC().Format(time.RFC3339) + " is not plausible"
}

// Plausible reports whether t is a valid sample time.
func Plausible(t, received time.Time) bool {
	return t.After(received.Add(-oldestSample)) && t.Before(received.Add(newestSample))
}

// Ingest processes a batch of frames and returns the outcome of each. It is
// idempotent: no readings of duplicates are stored, and points of a record that is processed
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
	outcomes := make([]Outcome, len(b.frames))
	for i, w := range b.frames {
		outcomes[i] = w.outcome
	}
	return outcomes, nil
}

// batch is the frames of one call, grouped by account.
type batch struct {
	frames []*work
	groups map[relay.AccountID][]*work
	// versions are those of the accounts' records as refresh has found them.
	versions map[relay.AccountID]Version
}

type work struct {
	*Arrival
	outcome     Outcome
	device      *cachedDevice
	time        time.Time // of its readings
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
	b := &batch{frames: make([]*work, len(arrivals)), groups: make(map[relay.AccountID][]*work, 1)}
	items := make([]work, len(arrivals))
	for i := range arrivals {
		w := &items[i]
		w.Arrival = &arrivals[i]
		b.frames[i] = w
	}
	for _, w := range b.frames {
		group := b.groups[w.Account]
		if len(b.groups) == 0 {
			group = make([]*work, 0, len(b.frames)) // most batches are of one account
		}
		b.groups[w.Account] = append(group, w)
	}
	return b
}

// open reports whether the frame is neither refused nor a duplicate.
func (w *work) open() bool { return w.outcome.Refused == "" && !w.outcome.Duplicate }

func (w *work) refuse(format string, args ...any) {
	w.outcome.Refused = fmt.Sprintf(format, args...)
}

// lost records a point that the store refuses for good.
func (w *work) lost(p Point, reason string) {
	w.outcome.Lost = append(w.outcome.Lost, p.Key+": "+reason)
	w.outcome.Points = slices.DeleteFunc(w.outcome.Points, func(q Point) bool {
		return q.SensorID == p.SensorID && q.Time.Equal(p.Time)
	})
}

func (w *work) note(format string, args ...any) { w.outcome.Notes.Add(fmt.Sprintf(format, args...)) }

// Limits of a frame's texts, in bytes. Identifiers are tags of the reading stores
// and parts of keys.
const (
	maxIdentifier = 255
	maxName       = 255
	maxDedup      = 128
)

func (s *Service) check(_ context.Context, b *batch) error {
	for _, w := range b.frames {
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

// boundedDedup is a frame's DedupID in bounded length.
func boundedDedup(f *decoders.Frame) string {
	if len(f.DedupID) > maxDedup {
		sum := sha256.Sum256([]byte(f.DedupID))
		return hex.EncodeToString(sum[:])
	}
	return f.DedupID
}

// claim marks the frames that an earlier record brought as duplicates.
func (s *Service) claim(ctx context.Context, b *batch) error {
	return b.markDuplicates(func(frames []Seen) (records []string, err error) {
		ok, err := s.optional.call(ctx, func() (err error) {
			records, err = s.cache.Claim(ctx, frames, s.options.DedupWindow)
			return err
		})
		if !ok { // without a cache all frames are new
			records = records[:0]
			for i := range frames {
				records = append(records, frames[i].Record)
			}
		}
		return records, err
	})
}

// markDuplicates marks the frames that another record brought first. firstRecords
// returns for each frame the record that did.
func (b *batch) markDuplicates(firstRecords func([]Seen) ([]string, error)) error {
	frames, works := make([]Seen, 0, len(b.frames)), make([]*work, 0, len(b.frames))
	for _, w := range b.frames {
		if w.Frame.DedupID != "" && w.open() {
			frames, works = append(frames, w.seen()), append(works, w)
		}
	}
	if len(frames) == 0 {
		return nil
	}
	records, err := firstRecords(frames)
	if err != nil {
		return fmt.Errorf("iot: check for duplicates: %w", err)
	}
	for i, w := range works {
		if w.firstRecord = records[i]; records[i] != w.Record {
			w.outcome.Duplicate, w.outcome.Repeats = true, records[i]
		}
	}
	return nil
}

// seen returns the key of the frame for the duplicate check.
func (a *Arrival) seen() Seen {
	s := Seen{Account: a.Account, Device: a.Frame.Identifier, Dedup: string(a.Frame.Kind) + boundedDedup(&a.Frame), Record: a.Record}
	if s.Span = a.Frame.DedupSpan; s.Span > 0 {
		s.At, _ = SampleTime(&a.Frame, a.ReceivedAt)
	}
	return s
}

// Repeats reports whether an arrival is the same frame as another one of its
// device.
func (a *Arrival) Repeats(otherArrival *Arrival) bool {
	s, o := a.seen(), otherArrival.seen()
	return a.Frame.DedupID != "" && s.Dedup == o.Dedup && s.Near(o.At)
}

// save writes to the reading store, and then updates the latest values. After an
// error of the store the whole batch is written again later.
func (s *Service) save(ctx context.Context, b *batch) error {
	// 1. Collect the points and the radio data, and the frame of each.
	n := 0
	for _, w := range b.frames {
		n += len(w.points)
	}
	write := Batch{Points: make([]Point, 0, n), Radio: make([]RadioData, 0, len(b.frames))}
	points, radio := make([]*work, 0, n), make([]*work, 0, len(b.frames))
	for _, w := range b.frames {
		if u := s.options.Radio.reduce(w.radio); u != nil { // also of a frame that could not be decoded
			write.Radio, radio = append(write.Radio, *u), append(radio, w)
		}
		if !w.open() {
			continue
		}
		for _, p := range w.points {
			write.Points, points = append(write.Points, p), append(points, w)
		}
		w.outcome.Points = w.points
	}

	// 2. Write them, and remove the points that the store refuses.
	if len(write.Points)+len(write.Radio) > 0 {
		refused, err := s.readings.Write(ctx, write)
		if err != nil {
			return relay.Errorf(relay.KindUnavailable, "iot: store readings: %w", err)
		}
		for _, r := range refused {
			if r.Point >= 0 {
				points[r.Point].lost(write.Points[r.Point], r.Reason)
			} else {
				radio[r.Radio].outcome.Lost = append(radio[r.Radio].outcome.Lost, "uplink: "+r.Reason)
			}
		}
	}

	// 3. Cache the stored points as the latest values, and the time each device was last heard.
	latest := make([]Point, 0, n)
	for _, w := range b.frames {
		latest = append(latest, w.outcome.Points...)
	}
	var g errgroup.Group
	if len(latest) > 0 {
		g.Go(func() error {
			return relay.Recovered("latest values", func() error {
				return s.optional.change(ctx, func() error { return s.cache.SetLatest(ctx, latest) })
			})
		})
	}
	if heard := lastHeard(b); len(heard) > 0 {
		g.Go(func() error {
			return relay.Recovered("times of the last frames", func() error {
				return s.optional.change(ctx, func() error { return s.cache.SetHeard(ctx, heard) })
			})
		})
	}
	if err := g.Wait(); err != nil {
		return fmt.Errorf("iot: latest values: %w", err)
	}
	return nil
}
