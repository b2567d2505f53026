package netserver

import (
	"encoding/hex"
	"math"
	"time"

	"github.com/penstock/penstock/decoders"
	"github.com/penstock/penstock/decoders/jsonbody"
)

// device reads the devEUI that the frame is about; anything else is refused.
func (e *envelope) device(field string) {
	s, _ := e.r.Value().Text()
	eui, ok := decoders.NormalizeDevEUI(s)
	if !ok {
		e.refuse(field, notDevEUI)
		return
	}
	e.f.Identifier, e.f.IsDevEUI = eui, true
}

// repeatSpan is how long after a frame another of the same counter and payload is
// the same, sent again by the device or heard by a further gateway. What a network
// posts again has its first time.
const repeatSpan = time.Minute

// named refuses a frame that no field has given a device.
func (e *envelope) named(field string) {
	if e.f.Identifier == "" {
		e.refuse(field, noDevice)
	}
}

// hex reads a payload in hex digits of any case; what is there and cannot be
// read is essential.
func (e *envelope) hex(field string) []byte {
	v := e.r.Value()
	b, err := hex.DecodeString(v.String())
	if err != nil || v.Kind != jsonbody.String && given(v) {
		e.refuse(field, notHex)
		return nil
	}
	if len(b) == 0 {
		return nil
	}
	return b
}

// instant reads an optional time in any form that a sender is known to use.
// One that does not parse is noted.
func (e *envelope) instant(field string) time.Time {
	v := e.r.Value()
	at, ok := anyTime(v)
	if !ok && given(v) && len(v.Raw()) > 0 && e.f.TimeNote == "" {
		e.f.TimeNote = field + ": is not a time: " + quoteClipped(v.Raw())
	}
	return at
}

// anyTime is looseTime with the forms of ThingPark and Monnit, and the usual
// one first.
func anyTime(v jsonbody.Value) (time.Time, bool) {
	const shortest = len("2006-01-02T15:04:05Z")
	if raw := v.Raw(); v.Kind == jsonbody.String && len(raw) >= shortest {
		if at, err := time.Parse(time.RFC3339Nano, string(raw)); err == nil {
			return at.UTC(), true
		}
	}
	if at, ok := looseTime(v); ok {
		return at, true
	}
	for _, layout := range []string{"2006-01-02T15:04:05Z0700", "1/2/2006 3:04:05 PM"} {
		if at, err := time.Parse(layout, v.String()); err == nil {
			return at.UTC(), true
		}
	}
	return time.Time{}, false
}

// coordinate reads degrees or metres; senders write "unknown", "" or null for
// what they do not know, and none of these is worth a warning.
func (e *envelope) coordinate() *float64 {
	n, ok := e.r.Value().Float()
	if !ok {
		return nil
	}
	return &n
}

// place makes a position of what was given. Zero beside zero is how senders
// say that they do not know one.
func place(lat, lon, alt *float64) *decoders.Position {
	if lat == nil || lon == nil || *lat == 0 && *lon == 0 || math.Abs(*lat) > 90 || math.Abs(*lon) > 180 {
		return nil
	}
	return &decoders.Position{Latitude: *lat, Longitude: *lon, Altitude: alt}
}

// frequency reads MHz or Hz as Hz.
func (e *envelope) frequency(field string) int64 { return hertz(e.number(field)) }

func (e *envelope) spreading(field string) int {
	n, _ := e.integer(field, 12)
	return int(n)
}
