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

// Write stores a batch in calls of at most Options.MaxLines lines. Each point is in a call that
// the server answered with 204, refused with a reason, or overwritten by a later text of the
// batch. After an error the result is unknown; writing again overwrites.
func (s *Store) Write(ctx context.Context, b iot.Readings) ([]iot.RefusedItem, error) {
	if err := ctx.Err(); err != nil {
		return nil, s.wrapError("write", err)
	}
	lastTexts := lastTextsOf(b.Points)
	e := encode(b, lastTexts)
	if len(e.lines) == 0 {
		return e.refused, nil
	}
	sv, err := s.server(ctx)
	if err != nil {
		return nil, err
	}
	if err := s.deleteOverwritten(ctx, sv, lastTexts); err != nil {
		return nil, s.wrapError("delete", err)
	}
	for lines := range slices.Chunk(e.lines, s.opts.MaxLines) {
		if err := s.send(ctx, e, lines, false); err != nil {
			return nil, err
		}
	}
	slices.SortFunc(e.refused, func(a, b iot.RefusedItem) int {
		return cmp.Or(cmp.Compare(a.Radio, b.Radio), cmp.Compare(a.Point, b.Point))
	})
	return e.refused, nil
}

// send writes some lines of a batch. grouped means that the lines are already sorted by
// measurement. If the server refuses some of the lines, send writes both halves: stored lines
// are written again, because only a 204 confirms that lines are stored.
func (s *Store) send(ctx context.Context, e *encodedBatch, lines []line, grouped bool) error {
	err := s.writes.WriteRecord(ctx, e.body(lines))
	verdict, reason := classifyWriteError(err)
	switch verdict {
	case stored:
		return nil
	case notApplied:
		return s.wrapError("write", err)
	}
	// The server may report that it dropped all lines of the call.
	allDropped := verdict == badLines && strings.HasSuffix(reason, fmt.Sprintf(" dropped=%d", len(lines)))
	if allDropped || len(lines) == 1 {
		for _, l := range lines {
			l.origin.Reason = reason
			e.refused = append(e.refused, l.origin)
		}
		return nil
	}
	if verdict == badLines && !grouped {
		// Servers usually refuse all lines of a measurement in which another program has
		// written the field as an integer. Halving finds adjacent lines with few calls.
		lines = slices.SortedStableFunc(slices.Values(lines), func(a, b line) int {
			return bytes.Compare(e.buf[a.start:a.tags], e.buf[b.start:b.tags])
		})
		grouped = true
	}
	middle := len(lines) / 2
	if err := s.send(ctx, e, lines[:middle], grouped); err != nil {
		return err
	}
	return s.send(ctx, e, lines[middle:], grouped)
}

type line struct {
	start, tags, end int // offsets within the buffer
	origin           iot.RefusedItem
}

type encodedBatch struct {
	buf     []byte
	lines   []line
	refused []iot.RefusedItem
}

// lineBytes is the typical size of a line, for the first allocation.
const lineBytes = 200

// encode encodes a batch, without numbers that a later text of the batch overwrites.
func encode(b iot.Readings, lastTexts map[pointKey]int) *encodedBatch {
	n := len(b.Points) + len(b.Radio)
	e := &encodedBatch{buf: make([]byte, 0, n*lineBytes), lines: make([]line, 0, n)}
	for i := range b.Points {
		p := &b.Points[i]
		if lastText, hasText := lastTexts[pointKeyOf(p)]; !hasText || p.IsText || i > lastText {
			e.add(iot.RefusedItem{Point: i, Radio: -1, Reason: p.InvalidReason()}, func(buf []byte) []byte { return appendPoint(buf, p) })
		}
	}
	for i := range b.Radio {
		u := &b.Radio[i]
		e.add(iot.RefusedItem{Point: -1, Radio: i, Reason: u.InvalidReason()}, func(buf []byte) []byte { return appendRadio(buf, u) })
	}
	return e
}

// add adds the line that encode appends, if any. An origin with a reason is refused instead.
func (e *encodedBatch) add(origin iot.RefusedItem, encode func([]byte) []byte) {
	if origin.Reason != "" {
		e.refused = append(e.refused, origin)
		return
	}
	start := len(e.buf)
	if e.buf = encode(e.buf); len(e.buf) > start {
		nameLen := bytes.Index(e.buf[start:], []byte(",account="))
		e.lines = append(e.lines, line{start: start, tags: start + nameLen, end: len(e.buf), origin: origin})
	}
}

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
