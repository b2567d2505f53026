package influx

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/penstock/penstock/relay/iot"
)

// Write stores a batch in calls of at most Options.MaxLines lines. Each point
// is either part of a call that the server answered with 204, or refused with
// a reason. After an error nothing is certain: writing again overwrites.
func (s *Store) Write(ctx context.Context, b iot.Batch) ([]iot.Refused, error) {
	if err := ctx.Err(); err != nil {
		return nil, s.failed("write", err)
	}
	w := writing{store: s, encoded: encode(b)}
	if len(w.lines) == 0 {
		return w.refused, nil
	}
	if _, err := s.server(ctx); err != nil {
		return nil, err
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

// writing is one batch on its way.
type writing struct {
	store *Store
	*encoded
}

// send writes some lines; grouped says that they stand by measurement already.
func (w *writing) send(ctx context.Context, lines []line, grouped bool) error {
	err := w.store.writes.WriteRecord(ctx, w.body(lines))
	switch j := judge(err); j.verdict {
	case stored:
		return nil
	case badLines:
		if len(lines) == 1 || refusesAll(j.reason, len(lines)) {
			w.refuse(lines, j.reason)
			return nil
		}
		if !grouped {
			lines = w.group(lines)
		}
		return w.halve(ctx, lines, true)
	case tooLarge:
		if len(lines) == 1 {
			w.refuse(lines, j.reason)
			return nil
		}
		return w.halve(ctx, lines, grouped)
	default:
		return w.store.failed("write", err)
	}
}

// halve writes both halves. Lines that were stored with the whole are written
// again: only a 204 says which ones those are.
func (w *writing) halve(ctx context.Context, lines []line, grouped bool) error {
	middle := len(lines) / 2
	if err := w.send(ctx, lines[:middle], grouped); err != nil {
		return err
	}
	return w.send(ctx, lines[middle:], grouped)
}

func (w *writing) refuse(lines []line, reason string) {
	for _, l := range lines {
		l.from.Reason = reason
		w.refused = append(w.refused, l.from)
	}
}

// refusesAll reports that the server dropped as many points as it was sent.
func refusesAll(reason string, lines int) bool {
	return strings.HasSuffix(reason, fmt.Sprintf(" dropped=%d", lines))
}
