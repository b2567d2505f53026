package iot

import (
	"time"

	"github.com/penstock/penstock/decoders"
	"github.com/penstock/penstock/relay/account"
)

// Arrival is a frame on its way in.
type Arrival struct {
	// Record is the journal record that brought it; it makes processing the
	// record again harmless.
	Record     string
	Account    account.ID
	DecoderID  string // from the webhook's decoder_id; may be empty
	ReceivedAt time.Time
	Frame      decoders.Frame
}

// Outcome is what became of an Arrival.
type Outcome struct {
	// Refused is why nothing could be stored; empty when all went well.
	Refused string
	// Early says that a frame which is being ingested at this moment may make
	// another outcome of it: an acknowledgement can overtake its device's first
	// uplink.
	Early bool
	// Note is what an operator should know all the same: what could not be read,
	// a codec's warnings, a time that was not plausible.
	Note     string
	DeviceID string
	// Duplicate is set for a frame that an earlier record brought.
	Duplicate bool
	// Lost names the points that no store takes, each with its reason.
	Lost []string
	// Points are the readings that were stored.
	Points []Point
}

// window is how far from its receipt a frame's time may lie.
const (
	oldestSample = 10 * 365 * 24 * time.Hour
	newestSample = 24 * time.Hour
)

// SampleTime picks the time of a frame: the device's own, else the network's,
// else the receipt; the first one that lies between 10 years back and 24 hours
// ahead of the receipt. The note names a time that was passed over.
func SampleTime(f *decoders.Frame, received time.Time) (at time.Time, note string) {
	for _, t := range [...]time.Time{f.SampleTime, f.NetworkTime} {
		if t.IsZero() {
			continue
		}
		if Plausible(t, received) {
			return t.UTC(), note
		}
		note = implausible(t)
	}
	return received.UTC(), note
}

func implausible(t time.Time) string {
	return "time " + t.UTC().Format(time.RFC3339) + " is not plausible"
}

// Plausible reports whether a sample may have been taken at t.
func Plausible(t, received time.Time) bool {
	return t.After(received.Add(-oldestSample)) && t.Before(received.Add(newestSample))
}
