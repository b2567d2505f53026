package netserver

import (
	"encoding/hex"
	"math"
	"strings"
	"time"

	"github.com/penstock/penstock/decoders"
	"github.com/penstock/penstock/decoders/jsonbody"
)

// device reads the devEUI that the frame is about; anything else is refused.
func (e *envelope) device(field string) {
	s, _ := e.r.Value().Text()
	eui, ok := decoders.NormalizeDevEUI(s)
	if !ok {
		e.refuse(field, "is not a devEUI of 16 hex digits")
		return
	}
	e.f.Identifier, e.f.IsDevEUI = eui, true
}

// named refuses a frame that no field has given a device.
func (e *envelope) named(field string) {
	if e.f.Identifier == "" {
		e.refuse(field, "names no device")
	}
}

// hex reads a payload in hex digits of any case; what is there and cannot be
// read is essential.
func (e *envelope) hex(field string) []byte {
	v := e.r.Value()
	b, err := hex.DecodeString(v.String())
	if err != nil || v.Kind != jsonbody.String && given(v) {
		e.refuse(field, "is not hex")
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
		e.f.TimeNote = field + ": is not a time: " + clip(v.Raw())
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

// flag reads true and false in the forms of senders whose values are all
// strings or all numbers. Anything else is false.
func (e *envelope) flag() bool {
	switch string(e.r.Value().Raw()) {
	case "true", "True", "TRUE", "1":
		return true
	}
	return false
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

// frequency reads MHz or Hz, which no radio band confuses, as Hz.
func (e *envelope) frequency(field string) int64 {
	n := e.number(field)
	switch {
	case n == nil || *n <= 0 || *n > 1e11:
		return 0
	case *n < 1e5:
		return int64(math.Round(*n*1e4)) * 100 // what a float32 of MHz holds
	}
	return int64(*n)
}

// bandwidth reads kHz or Hz as Hz.
func (e *envelope) bandwidth(field string) int {
	n := e.number(field)
	switch {
	case n == nil || *n <= 0 || *n > 1e7:
		return 0
	case *n < 5000:
		return int(math.Round(*n * 1000))
	}
	return int(*n)
}

func (e *envelope) spreading(field string) int {
	n, _ := e.integer(field, 12)
	return int(n)
}

// dataRate reads "SF12BW125" or "SF12 BW125 4/5". What is no LoRa data rate is
// kept as it stands.
func (e *envelope) dataRate(field string) {
	f := e.f
	f.DataRate = e.text(field)
	rest, found := strings.CutPrefix(f.DataRate, "SF")
	sf, rest := leadingInt(rest)
	rest, isLora := strings.CutPrefix(strings.TrimLeft(rest, " "), "BW")
	bw, _ := leadingInt(rest)
	if found && isLora && sf > 0 && sf <= 12 && bw > 0 && bw <= 1e4 {
		f.SpreadingFactor, f.BandwidthHz = sf, bw*1000
		f.DataRate = loraRate(sf, f.BandwidthHz)
	}
}

// leadingInt reads up to six digits.
func leadingInt(s string) (n int, rest string) {
	i := 0
	for ; i < len(s) && i < 6 && s[i] >= '0' && s[i] <= '9'; i++ {
		n = n*10 + int(s[i]-'0')
	}
	return n, s[i:]
}

// loraBattery reads a battery on LoRaWAN's scale.
func (e *envelope) loraBattery(field string) *float64 {
	n, ok := e.integer(field, 255)
	if !ok {
		return nil
	}
	level := float64(n)
	return loraPercent(&level)
}

// loraPercent gives a level of LoRaWAN's DevStatusAns in per cent: 1 to 254
// stand between empty and full, 0 for an external supply, 255 for unknown.
func loraPercent(level *float64) *float64 {
	if level == nil || *level < 1 || *level > 254 {
		return nil
	}
	percent := math.Round(*level/254*1000) / 10
	return &percent
}

// percent reads a battery in per cent; beyond 100 senders mean a supply.
func (e *envelope) percent(field string) *float64 {
	n := e.number(field)
	if n == nil || *n < 0 || *n > 100 {
		return nil
	}
	return n
}
