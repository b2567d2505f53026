package influx

import (
	"bytes"
	"math"
	"slices"
	"time"

	"github.com/penstock/penstock/relay/iot"
)

// line is one line of an encoded batch, and the point or uplink it came from.
type line struct {
	start, name, end int // within the buffer; name is where the tags begin
	from             iot.Refused
}

// encoded is a batch as lines, and what no server will be asked to take.
type encoded struct {
	buf     []byte
	lines   []line
	refused []iot.Refused
}

// lineBytes is about what a line takes; it only sizes the first allocation.
const lineBytes = 176

func encode(b iot.Batch) *encoded {
	n := len(b.Points) + len(b.Uplinks)
	e := &encoded{buf: make([]byte, 0, n*lineBytes), lines: make([]line, 0, n)}
	for i := range b.Points {
		e.point(&b.Points[i], i)
	}
	for i := range b.Uplinks {
		e.uplink(&b.Uplinks[i], i)
	}
	return e
}

func (e *encoded) point(p *iot.Point, i int) {
	from := iot.Refused{Point: i, Uplink: -1}
	if from.Reason = refusal(p); from.Reason != "" {
		e.refused = append(e.refused, from)
		return
	}
	start := len(e.buf)
	e.buf = appendPoint(e.buf, p)
	e.add(start, from)
}

func (e *encoded) uplink(u *iot.Uplink, i int) {
	from := iot.Refused{Point: -1, Uplink: i}
	if from.Reason = uplinkRefusal(u); from.Reason != "" {
		e.refused = append(e.refused, from)
		return
	}
	start := len(e.buf)
	if e.buf = appendUplink(e.buf, u); len(e.buf) > start {
		e.add(start, from)
	}
}

func (e *encoded) add(start int, from iot.Refused) {
	name := bytes.Index(e.buf[start:], []byte(",account="))
	e.lines = append(e.lines, line{start: start, name: start + name, end: len(e.buf), from: from})
}

// body is the request for some of the lines.
func (e *encoded) body(lines []line) string {
	n := 0
	for _, l := range lines {
		n += l.end - l.start
	}
	b := make([]byte, 0, n)
	for _, l := range lines {
		b = append(b, e.buf[l.start:l.end]...)
	}
	return string(b)
}

// group brings the lines of a measurement together and leaves their order
// otherwise: what a server refuses is mostly a whole measurement, whose field
// someone else has made an integer, and halving finds neighbours fast.
func (e *encoded) group(lines []line) []line {
	return slices.SortedStableFunc(slices.Values(lines), func(a, b line) int {
		return bytes.Compare(e.buf[a.start:a.name], e.buf[b.start:b.name])
	})
}

// refusal says why a reading is not sent, or nothing.
func refusal(p *iot.Point) string {
	switch {
	case p.Type == "":
		return "no sensor type"
	case !p.IsText && !finite(&p.Value):
		return "the value is not a finite number"
	case !storable(p.Time):
		return "the time is outside the years 1678 to 2261"
	}
	return ""
}

func uplinkRefusal(u *iot.Uplink) string {
	switch {
	case !finite(u.RSSI) || !finite(u.SNR) || !finite(u.Battery) || !finite(u.Margin) || !finite(u.Latitude) || !finite(u.Longitude):
		return "a value is not a finite number"
	case !storable(u.Time):
		return "the time is outside the years 1678 to 2261"
	}
	return ""
}

func finite(v *float64) bool {
	return v == nil || !math.IsNaN(*v) && !math.IsInf(*v, 0)
}

// storable reports whether nanoseconds since 1970 fit into 64 bits.
func storable(t time.Time) bool {
	year := t.UTC().Year()
	return year >= 1678 && year <= 2261
}
