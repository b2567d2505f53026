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

// anyTime parses a time in the forms of looseTime, ThingPark and Monnit. It tries the usual
// one, RFC 3339, first.
func anyTime(v jsonbody.Value) (time.Time, bool) {
	const minLen = len("2006-01-02T15:04:05Z")
	if raw := v.Raw(); v.Kind == jsonbody.String && len(raw) >= minLen {
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

// looseTime parses ISO 8601 (in UTC if there is no zone), or a number since 1970: seconds
// below 10^11 (the year 5138), else milliseconds (from 1973).
func looseTime(v jsonbody.Value) (time.Time, bool) {
	n, isNumber := v.Float()
	const minMilliseconds, limit = 1e11, 1e14
	switch {
	case !isNumber:
		return iso8601.Parse(v.String())
	case n <= 0 || n >= limit:
		return time.Time{}, false
	case n >= minMilliseconds:
		return time.UnixMilli(int64(n)).UTC(), true
	}
	// Round to microseconds, the precision of a float64 for current times.
	s, frac := math.Modf(n)
	return time.Unix(int64(s), int64(math.Round(frac*1e6))*1e3).UTC(), true
}

// quoteClipped quotes the first 40 bytes of a value for a note.
func quoteClipped(b []byte) string { return strconv.Quote(string(b[:min(len(b), 40)])) }

// clockSpan is the largest difference between the clock of a gateway and another clock. If the
// difference is larger, the gateway's clock is wrong. It is not smaller because a gateway that
// was offline forwards its frames hours later.
const clockSpan = 24 * time.Hour

// gatewayTime returns the earliest time of a gateway within clockSpan of the reference or, if
// there is none, the earliest one. A zero reference is replaced by the median of the times,
// because the clock of a gateway without a time server starts in the past.
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

// plausibleTime returns t, a time of a gateway. If t differs from the server's time by more than
// clockSpan, it returns the time of another gateway or, if all differ, the server's.
func plausibleTime(gateways []decoders.Gateway, server, t time.Time) time.Time {
	if server.IsZero() || t.IsZero() || server.Sub(t).Abs() <= clockSpan {
		return t
	}
	if t := gatewayTime(gateways, server); !t.IsZero() && server.Sub(t).Abs() <= clockSpan {
		return t
	}
	return server
}

// noteWrongTime notes that a time is not used because another clock contradicts it.
func noteWrongTime(f *decoders.Frame, field string, t time.Time) {
	if f.TimeNote == "" {
		f.TimeNote = field + ": " + t.Format(time.RFC3339) + " is not used: the server's or another gateway's clock differs by more than a day"
	}
}

// repeatSpan is the DedupSpan of frames that are identified by a counter: within it, a frame
// with the same counter and payload was repeated by the device or received by another
// gateway. A post that the network repeats has the time of the first post.
const repeatSpan = time.Minute

// counterID returns an identifier of a frame made of its counter and its time in the network, or
// "" if one is unknown.
func counterID(f *decoders.Frame) string {
	if !f.HasFCnt {
		return ""
	}
	return timeID(f)
}

// timeID returns an identifier like counterID does, also for a frame without a counter.
func timeID(f *decoders.Frame) string {
	if f.NetworkTime.IsZero() {
		return ""
	}
	return strconv.FormatInt(f.FCnt, 10) + ":" + strconv.FormatInt(f.NetworkTime.UnixNano(), 10)
}
