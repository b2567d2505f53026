package influx

import (
	"bytes"
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/penstock/penstock/relay/iot"
)

// Write stores a batch in calls of at most Options.MaxLines lines. Each point is
// either in a call that the server answered with 204, or refused with a reason.
// After an error the result is unknown; writing again overwrites.
func (s *Store) Write(ctx context.Context, b iot.Batch) ([]iot.Refused, error) {
	if err := ctx.Err(); err != nil {
		return nil, s.wrapError("write", err)
	}
	texts := textsOf(b.Points)
	w := batchWrite{store: s, encodedBatch: encode(b, texts)}
	if len(w.lines) == 0 {
		return w.refused, nil
	}
	sv, err := s.server(ctx)
	if err != nil {
		return nil, err
	}
	if err := s.deleteOverwritten(ctx, sv, texts); err != nil {
		return nil, s.wrapError("delete", err)
	}
	for lines := range slices.Chunk(w.lines, s.opts.MaxLines) {
		if err := w.send(ctx, lines, false); err != nil {
			return nil, err
		}
	}
	slices.SortFunc(w.refused, func(a, b iot.Refused) int {
		return cmp.Or(cmp.Compare(a.Radio, b.Radio), cmp.Compare(a.Point, b.Point))
	})
	return w.refused, nil
}

// batchWrite is a batch being written.
type batchWrite struct {
	store *Store
	*encodedBatch
}

// send writes some lines; grouped means that they are already sorted by
// measurement.
func (b *batchWrite) send(ctx context.Context, lines []line, grouped bool) error {
	err := b.store.writes.WriteRecord(ctx, b.body(lines))
	switch j := classifyWriteError(err); j.verdict {
	case stored:
		return nil
	case badLines:
		if len(lines) == 1 || refusesAll(j.reason, len(lines)) {
			b.refuse(lines, j.reason)
			return nil
		}
		if !grouped {
			lines = b.group(lines)
		}
		return b.halve(ctx, lines, true)
	case tooLarge:
		if len(lines) == 1 {
			b.refuse(lines, j.reason)
			return nil
		}
		return b.halve(ctx, lines, grouped)
	default:
		return b.store.wrapError("write", err)
	}
}

// halve writes both halves. Lines that were stored with the whole batch are
// written again, because only a 204 confirms them.
func (b *batchWrite) halve(ctx context.Context, lines []line, grouped bool) error {
	middle := len(lines) / 2
	if err := b.send(ctx, lines[:middle], grouped); err != nil {
		return err
	}
	return b.send(ctx, lines[middle:], grouped)
}

func (b *batchWrite) refuse(lines []line, reason string) {
	for _, l := range lines {
		l.origin.Reason = reason
		b.refused = append(b.refused, l.origin)
	}
}

// refusesAll reports whether the server dropped as many points as it was sent.
func refusesAll(reason string, lines int) bool {
	return strings.HasSuffix(reason, fmt.Sprintf(" dropped=%d", lines))
}

// line is one line of an encoded batch, and the point or uplink it came from.
type line struct {
	start, name, end int // within the buffer; name is the offset of the tags
	origin           iot.Refused
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
	n := len(b.Points) + len(b.Radio)
	e := &encodedBatch{buf: make([]byte, 0, n*lineBytes), lines: make([]line, 0, n)}
	for i := range b.Points {
		p := &b.Points[i]
		if lastText, over := texts[pointKeyOf(p)]; !over || p.IsText || i > lastText {
			e.point(p, i)
		}
	}
	for i := range b.Radio {
		e.uplink(&b.Radio[i], i)
	}
	return e
}

func (e *encodedBatch) point(p *iot.Point, i int) {
	origin := iot.Refused{Point: i, Radio: -1}
	if origin.Reason = p.Invalid(); origin.Reason != "" {
		e.refused = append(e.refused, origin)
		return
	}
	start := len(e.buf)
	e.buf = appendPoint(e.buf, p)
	e.add(start, origin)
}

func (e *encodedBatch) uplink(u *iot.RadioData, i int) {
	origin := iot.Refused{Point: -1, Radio: i}
	if origin.Reason = u.Invalid(); origin.Reason != "" {
		e.refused = append(e.refused, origin)
		return
	}
	start := len(e.buf)
	if e.buf = appendUplink(e.buf, u); len(e.buf) > start {
		e.add(start, origin)
	}
}

func (e *encodedBatch) add(start int, origin iot.Refused) {
	name := bytes.Index(e.buf[start:], []byte(",account="))
	e.lines = append(e.lines, line{start: start, name: start + name, end: len(e.buf), origin: origin})
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
