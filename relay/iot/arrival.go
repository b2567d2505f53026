package iot

import (
	"context"
	"time"

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
	// NoRules means that rules do not look at the frame: it is replayed.
	NoRules bool
	// WaitForEarlier waits until the batches before this one are done; nil if none are under
	// way. Rules look at the frames of a device in their order.
	WaitForEarlier func(ctx context.Context) error
}

// Outcome is the result of processing an Arrival.
type Outcome struct {
	// Refused is the reason why nothing was stored; empty on success.
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
func SampleTime(f *decoders.Frame, received time.Time) (at time.Time, notes decoders.Notes) {
	at = received.UTC()
	used := "the time of receipt is used"
	for _, candidate := range [...]struct {
		time time.Time
		used string
	}{{f.SampleTime, "the device's time is used"}, {f.NetworkTime, "the network's time is used"}} {
		if candidate.time.IsZero() {
			continue
		}
		if Plausible(candidate.time, received) {
			at, used = candidate.time.UTC(), candidate.used
			break
		}
		notes.Add(implausibleNote(candidate.time))
	}
	notes.Add(f.TimeNote)
	for i := range notes {
		notes[i] += "; " + used
	}
	return at, notes
}

func implausibleNote(t time.Time) string {
	return "time " + t.UTC().Format(time.RFC3339) + " is not plausible"
}

// Plausible reports whether t is a valid sample time.
func Plausible(t, received time.Time) bool {
	return t.After(received.Add(-oldestSample)) && t.Before(received.Add(newestSample))
}
