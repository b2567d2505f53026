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
	// RecordID is the ID of the event that contains the frame, with the suffix .n if its post has
	// several frames. Processing the same record again has the same result.
	RecordID string
	// Post is the same for the frames of one post, which are consecutive. It is empty for the only
	// frame of a post.
	Post      string
	Account   relay.AccountID
	DecoderID string // decoder_id of the webhook; may be empty
	// ReceivedAt is the time of frames without a time of their own. It differs between the frames
	// of one post.
	ReceivedAt time.Time
	Frame      decoders.Frame
	Trace      tracing.Parent // span of the frame's processing; may be empty
	// DecodeNow means that the frame is never deferred, however long its decoder takes, because it
	// delays no frames of other accounts.
	DecodeNow bool
	// SkipRules means that rules do not evaluate the frame, because it is replayed.
	SkipRules bool
	// WaitForEarlier waits until earlier batches are processed, because rules evaluate the frames
	// of a device in order. It is nil if no earlier batch is in progress.
	WaitForEarlier func(ctx context.Context) error
}

// Outcome is the result of processing an Arrival.
type Outcome struct {
	// Refused is the reason why no readings were stored, or empty on success. Radio data may have
	// been stored.
	Refused string
	// Provisional reports whether a concurrent frame may change the outcome: an acknowledgement
	// can arrive before the first uplink of its device.
	Provisional bool
	// Deferred reports whether the frame was not decoded, because the decoding time of the batch
	// was used up or the last call of its codec exceeded a limit. The frame must then be processed
	// again with DecodeNow.
	Deferred bool
	// Notes lists the unused parts of an accepted frame: values and times that could not be read.
	// It also has the codec's warnings and the reason why a frame has no readings.
	Notes    decoders.Notes
	DeviceID string
	// Duplicate reports whether an earlier record, Repeats, contained the same frame.
	Duplicate bool
	Repeats   string
	// Lost lists the values of the frame that were not stored, with reasons: refused by the store,
	// beyond a limit, or not a finite number.
	Lost []string
	// Points are the stored readings.
	Points []Point
}

// Limits of a frame's time, relative to its receipt.
const (
	oldestSample = 10 * 365 * 24 * time.Hour
	newestSample = 24 * time.Hour
)

// SampleTime returns the time of a frame: the device's time if it is plausible, else the network's time
// if it is plausible, else the time of receipt. The notes name the times that could not be used.
func SampleTime(f *decoders.Frame, received time.Time) (sampleTime time.Time, notes decoders.Notes) {
	sampleTime = received.UTC()
	choice := "the time of receipt is used"
	for _, candidate := range [...]struct {
		time   time.Time
		choice string
	}{{f.SampleTime, "the device's time is used"}, {f.NetworkTime, "the network's time is used"}} {
		if candidate.time.IsZero() {
			continue
		}
		if Plausible(candidate.time, received) {
			sampleTime, choice = candidate.time.UTC(), candidate.choice
			break
		}
		notes.Add(implausibleNote(candidate.time))
	}
	notes.Add(f.TimeNote)
	for i := range notes {
		notes[i] += "; " + choice
	}
	return sampleTime, notes
}

func implausibleNote(t time.Time) string {
	return "time " + t.UTC().Format(time.RFC3339) + " is not plausible"
}

// Plausible reports whether a time t of a frame is less than 10 years before and less than 24 hours
// after its receipt.
func Plausible(t, received time.Time) bool {
	return t.After(received.Add(-oldestSample)) && t.Before(received.Add(newestSample))
}

// Ingest processes a batch of frames and returns the outcome of each frame. It is idempotent, except for
// the counts of unmapped keys: it stores no readings of duplicates that the cache knows, and the points
// of a record that is processed again overwrite the earlier ones. It normalizes the frames of arrivals in
// place.
//
// After an error, usually relay.KindUnavailable, the whole batch must be processed again.
func (s *Service) Ingest(ctx context.Context, arrivals []Arrival) ([]Outcome, error) {
	b := newBatch(arrivals)
	for _, step := range [...]func(context.Context, *frameBatch) error{
		s.refresh, s.check, s.deduplicate, s.identify, s.mergePosts, s.decode, s.save, s.logFrames, s.evaluateRules, s.countUnmapped,
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

// frameBatch has the frames of a call of Ingest, in order and by account.
type frameBatch struct {
	frames   []*workItem
	groups   map[relay.AccountID][]*workItem
	versions map[relay.AccountID]Version // of the accounts' records, read by refresh
	types    map[string]SensorType       // nil until a text is decoded
}

// workItem is a frame in processing.
type workItem struct {
	*Arrival
	outcome       Outcome
	device        *cachedDevice
	time          time.Time // time of the readings
	points        []Point
	radio         *RadioData
	firstRecordID string       // record that first contained the frame, if known
	merged        *MergedFrame // the data of all posts about the frame; nil if they were not merged
	unmapped      []string     // keys without a sensor: not mapped, or beyond the series limit
	// limitReason is set if the device lacks sensors because of the series limit.
	limitReason string
	decoded     *decoders.Decoded // the codec's result; nil until the frame is decoded
	preview     bool              // the frame is not stored and changes nothing
}

func newBatch(arrivals []Arrival) *frameBatch {
	b := &frameBatch{frames: make([]*workItem, len(arrivals)), groups: make(map[relay.AccountID][]*workItem)}
	for i := range arrivals {
		w := &workItem{Arrival: &arrivals[i]}
		b.frames[i] = w
		b.groups[w.Account] = append(b.groups[w.Account], w)
	}
	return b
}

// isAccepted reports whether the frame is neither refused nor a duplicate.
func (w *workItem) isAccepted() bool { return w.outcome.Refused == "" && !w.outcome.Duplicate }

func (w *workItem) refuse(format string, args ...any) {
	w.outcome.Refused = fmt.Sprintf(format, args...)
}

// recordLost records a point that the store refuses and removes it from the stored points.
func (w *workItem) recordLost(p Point, reason string) {
	w.outcome.Lost = append(w.outcome.Lost, p.Key+": "+reason)
	w.outcome.Points = slices.DeleteFunc(w.outcome.Points, func(q Point) bool {
		return q.SensorID == p.SensorID && q.Time.Equal(p.Time)
	})
}

func (w *workItem) note(format string, args ...any) {
	w.outcome.Notes.Add(fmt.Sprintf(format, args...))
}

// Limits of a frame's texts, in bytes.
const (
	maxIdentifier = 255
	maxName       = 255
	maxDedup      = 128
)

func (s *Service) check(_ context.Context, b *frameBatch) error {
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

// boundedDedup returns a frame's DedupID, or its hash if it is longer than maxDedup.
func boundedDedup(f *decoders.Frame) string {
	if len(f.DedupID) > maxDedup {
		sum := sha256.Sum256([]byte(f.DedupID))
		return hex.EncodeToString(sum[:])
	}
	return f.DedupID
}

// deduplicate marks a frame as a duplicate if an earlier record contained it.
func (s *Service) deduplicate(ctx context.Context, b *frameBatch) error {
	return b.markDuplicates(func(frames []FrameKey) (recordIDs []string, err error) {
		ok, err := s.optional.call(ctx, func() (err error) {
			recordIDs, err = s.cache.Deduplicate(ctx, frames, s.options.DedupWindow)
			return err
		})
		if !ok { // without the cache all frames are new
			recordIDs = recordIDs[:0]
			for i := range frames {
				recordIDs = append(recordIDs, frames[i].RecordID)
			}
		}
		return recordIDs, err
	})
}

// markDuplicates marks the frames that another record contained first. firstRecords returns the first
// record of each frame.
func (b *frameBatch) markDuplicates(firstRecords func([]FrameKey) ([]string, error)) error {
	frames, items := make([]FrameKey, 0, len(b.frames)), make([]*workItem, 0, len(b.frames))
	for _, w := range b.frames {
		if w.Frame.DedupID != "" && w.isAccepted() {
			frames, items = append(frames, w.frameKey()), append(items, w)
		}
	}
	if len(frames) == 0 {
		return nil
	}
	recordIDs, err := firstRecords(frames)
	if err != nil {
		return fmt.Errorf("iot: check for duplicates: %w", err)
	}
	for i, w := range items {
		if w.firstRecordID = recordIDs[i]; recordIDs[i] != w.RecordID {
			w.outcome.Duplicate, w.outcome.Repeats = true, recordIDs[i]
		}
	}
	return nil
}

// frameKey returns the key of the frame for the duplicate check.
func (a *Arrival) frameKey() FrameKey {
	s := FrameKey{Account: a.Account, Device: a.Frame.Identifier, Dedup: string(a.Frame.Kind) + boundedDedup(&a.Frame), RecordID: a.RecordID}
	if s.Span = a.Frame.DedupSpan; s.Span > 0 {
		s.Time, _ = SampleTime(&a.Frame, a.ReceivedAt)
	}
	return s
}

// Repeats reports whether an arrival has the same frame as another arrival of its device.
func (a *Arrival) Repeats(otherArrival *Arrival) bool {
	seen, otherSeen := a.frameKey(), otherArrival.frameKey()
	return a.Frame.DedupID != "" && seen.Dedup == otherSeen.Dedup && seen.SameFrame(otherSeen.Time)
}

// save writes to the reading store and then updates the cache of latest values.
func (s *Service) save(ctx context.Context, b *frameBatch) error {
	// 1. Collect the points and the radio data, with their frames. Frames that could not be decoded
	// also have radio data.
	count := 0
	for _, w := range b.frames {
		count += len(w.points)
	}
	readings := Readings{Points: make([]Point, 0, count), Radio: make([]RadioData, 0, len(b.frames))}
	pointFrames, radioFrames := make([]*workItem, 0, count), make([]*workItem, 0, len(b.frames))
	for _, w := range b.frames {
		if radio := s.options.Radio.reduce(w.radio); radio != nil {
			readings.Radio, radioFrames = append(readings.Radio, *radio), append(radioFrames, w)
		}
		if !w.isAccepted() {
			continue
		}
		for _, p := range w.points {
			readings.Points, pointFrames = append(readings.Points, p), append(pointFrames, w)
		}
		w.outcome.Points = w.points
	}

	// 2. Write the readings and remove the points that the store refuses.
	if len(readings.Points)+len(readings.Radio) > 0 {
		refused, err := s.readings.Write(ctx, readings)
		if err != nil {
			return relay.Errorf(relay.KindUnavailable, "iot: store readings: %w", err)
		}
		for _, r := range refused {
			if r.Point >= 0 {
				pointFrames[r.Point].recordLost(readings.Points[r.Point], r.Reason)
			} else {
				outcome := &radioFrames[r.Radio].outcome
				outcome.Lost = append(outcome.Lost, "uplink: "+r.Reason)
			}
		}
	}

	// 3. Cache the latest values and the time of each device's last frame.
	latest := make([]Point, 0, count)
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
