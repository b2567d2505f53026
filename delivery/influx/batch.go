package influx

import (
	"bytes"
	"slices"
	"strings"

	"github.com/penstock/penstock/relay/iot"
)

// line is one line of an encoded batch, and the point or uplink it came from.
type line struct {
	start, name, end int // within the buffer; name is where the tags begin
	from             iot.Refused
}

// encodedBatch is a batch in line protocol, and the readings that are not sent.
type encodedBatch struct {
	buf     []byte
	lines   []line
	refused []iot.Refused
}

// lineBytes is the typical size of a line, for the first allocation.
const lineBytes = 200

// encode encodes a batch without the numbers that its texts overwrite.
func encode(b iot.Batch, texts map[pointKey]int) *encodedBatch {
	n := len(b.Points) + len(b.Uplinks)
	e := &encodedBatch{buf: make([]byte, 0, n*lineBytes), lines: make([]line, 0, n)}
	for i := range b.Points {
		p := &b.Points[i]
		if last, over := texts[pointKeyOf(p)]; !over || p.IsText || i > last {
			e.point(p, i)
		}
	}
	for i := range b.Uplinks {
		e.uplink(&b.Uplinks[i], i)
	}
	return e
}

func (e *encodedBatch) point(p *iot.Point, i int) {
	from := iot.Refused{Point: i, Uplink: -1}
	if from.Reason = p.Invalid(); from.Reason != "" {
		e.refused = append(e.refused, from)
		return
	}
	start := len(e.buf)
	e.buf = appendPoint(e.buf, p)
	e.add(start, from)
}

func (e *encodedBatch) uplink(u *iot.RadioData, i int) {
	from := iot.Refused{Point: -1, Uplink: i}
	if from.Reason = u.Invalid(); from.Reason != "" {
		e.refused = append(e.refused, from)
		return
	}
	start := len(e.buf)
	if e.buf = appendUplink(e.buf, u); len(e.buf) > start {
		e.add(start, from)
	}
}

func (e *encodedBatch) add(start int, from iot.Refused) {
	name := bytes.Index(e.buf[start:], []byte(",account="))
	e.lines = append(e.lines, line{start: start, name: start + name, end: len(e.buf), from: from})
}

// body returns the request body for some of the lines.
func (e *encodedBatch) body(lines []line) string {
	n := 0
	for _, l := range lines {
		n += l.end - l.start
	}
	var b strings.Builder
	b.Grow(n)
	for _, l := range lines {
		b.Write(e.buf[l.start:l.end])
	}
	return b.String()
}

// group sorts the lines by measurement and keeps their order otherwise. Servers
// usually refuse a whole measurement, whose field another program has written as
// an integer, and halving finds neighbours fast.
func (e *encodedBatch) group(lines []line) []line {
	return slices.SortedStableFunc(slices.Values(lines), func(a, b line) int {
		return bytes.Compare(e.buf[a.start:a.name], e.buf[b.start:b.name])
	})
}
