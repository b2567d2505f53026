package influx

import (
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
		return cmp.Or(cmp.Compare(a.Uplink, b.Uplink), cmp.Compare(a.Point, b.Point))
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
		l.from.Reason = reason
		b.refused = append(b.refused, l.from)
	}
}

// refusesAll reports whether the server dropped as many points as it was sent.
func refusesAll(reason string, lines int) bool {
	return strings.HasSuffix(reason, fmt.Sprintf(" dropped=%d", lines))
}
