package netserver

import (
	"math"
	"slices"
	"strconv"
	"time"

	"github.com/penstock/penstock/decoders"
	"github.com/penstock/penstock/decoders/iso8601"
	"github.com/penstock/penstock/decoders/jsonbody"
)

// anyTime is looseTime with the forms of ThingPark and Monnit, and the usual
// one first.
func anyTime(v jsonbody.Value) (time.Time, bool) {
	const shortest = len("2006-01-02T15:04:05Z")
	if raw := v.Raw(); v.Kind == jsonbody.String && len(raw) >= shortest {
		if t, err := time.Parse(time.RFC3339Nano, string(raw)); err == nil {
			return t.UTC(), true
		}
	}
	if t, ok := looseTime(v); ok {
		return t, true
	}
	for _, layout := range []string{"2006-01-02T15:04:05Z0700", "1/2/2006 3:04:05 PM"} {
		if t, err := time.Parse(layout, v.String()); err == nil {
			return t.UTC(), true
		}
	}
	return time.Time{}, false
}

// looseTime reads ISO 8601 (without a zone UTC), or a count since 1970: seconds below
// 10^11 (the year 5138), milliseconds from there on (1973).
func looseTime(v jsonbody.Value) (time.Time, bool) {
	n, isNumber := v.Float()
	const milliseconds, tooMuch = 1e11, 1e14
	switch {
	case !isNumber:
		return iso8601.Parse(v.String())
	case n <= 0 || n >= tooMuch:
		return time.Time{}, false
	case n >= milliseconds:
		return time.UnixMilli(int64(n)).UTC(), true
	}
	// To the microsecond: what a float64 holds of it today.
	s, frac := math.Modf(n)
	return time.Unix(int64(s), int64(math.Round(frac*1e6))*1e3).UTC(), true
}

// quoteClipped shortens what is quoted in a note.
func quoteClipped(b []byte) string {
	const most = 40
	if len(b) > most {
		b = b[:most]
	}
	return strconv.Quote(string(b))
}

// clockSpan is the largest difference between the clock of a gateway and another clock;
// beyond it the gateway's clock is wrong. Gateways that lost their uplink post frames hours
// later.
const clockSpan = 24 * time.Hour

// gatewayTime returns the earliest time that a gateway gave, of those within clockSpan
// of the reference if there are any. The reference is the server's time or, if that is
// zero, the median of the gateways': one without a time server begins in the past.
func gatewayTime(gateways []decoders.Gateway, reference time.Time) time.Time {
	var times []time.Time
	for _, g := range gateways {
		if !g.Time.IsZero() {
			times = append(times, g.Time)
		}
	}
	if len(times) == 0 {
		return time.Time{}
	}
	slices.SortFunc(times, time.Time.Compare)
	if reference.IsZero() {
		reference = times[len(times)/2]
	}
	for _, t := range times {
		if reference.Sub(t).Abs() <= clockSpan {
			return t
		}
	}
	return times[0]
}

// believable returns a time that came from a gateway or, if it is further than
// clockSpan from the server's, that of another gateway or else the server's.
func believable(gateways []decoders.Gateway, server, t time.Time) time.Time {
	if server.IsZero() || t.IsZero() || server.Sub(t).Abs() <= clockSpan {
		return t
	}
	if t := gatewayTime(gateways, server); !t.IsZero() && server.Sub(t).Abs() <= clockSpan {
		return t
	}
	return server
}

// disbelieve notes that a time is not used, since another clock contradicts it.
func disbelieve(f *decoders.Frame, field string, t time.Time) {
	if f.TimeNote == "" {
		f.TimeNote = field + ": " + t.Format(time.RFC3339) + " is not used: the server's or another gateway's clock differs by more than a day"
	}
}

// repeatSpan is the time after a frame within which another with the same counter and payload
// is the same frame, sent again by the device or received by a further gateway. What a
// network posts again has its first time.
const repeatSpan = time.Minute

// counted identifies a frame by its counter and the time of the network; empty if one
// of them is unknown.
func counted(f *decoders.Frame) string {
	if !f.HasFCnt {
		return ""
	}
	return timed(f)
}

// timed is counted for a sender whose frames need no counter.
func timed(f *decoders.Frame) string {
	if f.NetworkTime.IsZero() {
		return ""
	}
	return strconv.FormatInt(f.FCnt, 10) + ":" + strconv.FormatInt(f.NetworkTime.UnixNano(), 10)
}
