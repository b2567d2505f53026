package journal

import (
	"context"
	"errors"
	"fmt"
	"io"
	"slices"
)

// Read returns the record with the given sequence, or ErrNotFound.
func (l *Log) Read(seq uint64) (Record, error) {
	c := &cursor{log: l, seq: seq}
	defer c.close()
	rec, err := c.readNext()
	if errors.Is(err, io.EOF) || err == nil && rec.Seq != seq {
		return Record{}, fmt.Errorf("journal: read %d: %w", seq, ErrNotFound)
	}
	return rec, err
}

// Range calls fn for every durable record from from to to, both included, in
// order, and stops at its first error. Records that the retention removed, also
// while Range runs, are passed over.
func (l *Log) Range(ctx context.Context, fromSeq, toSeq uint64, fn func(Record) error) error {
	c := &cursor{log: l, seq: fromSeq}
	defer c.close()
	for {
		if err := ctx.Err(); err != nil {
			return fmt.Errorf("journal: range: %w", err)
		}
		rec, err := c.readNext()
		if errors.Is(err, io.EOF) || err == nil && rec.Seq > toSeq {
			return nil
		}
		if err != nil {
			return err
		}
		if err := fn(rec); err != nil {
			return err
		}
	}
}

// Before returns, newest first, records with a sequence under seq, 0 for the newest: up to
// limit, and about maxBytes. The sequence of the last one is the seq of the next page.
// When ctx ends, it returns the records found so far and the error of ctx.
func (l *Log) Before(ctx context.Context, seq uint64, limit, maxBytes int) ([]Record, error) {
	if seq == 0 {
		seq = l.lastDurable() + 1
	}
	var found []Record
	for size := 0; len(found) < limit && size < maxBytes; {
		start, ok := l.indexedBefore(seq)
		if !ok {
			break
		}
		var block []Record
		err := l.Range(ctx, start, seq-1, func(rec Record) error {
			block = append(block, rec)
			return nil
		})
		if err != nil {
			return found, err
		}
		for _, rec := range slices.Backward(block) {
			if len(found) < limit {
				found, size = append(found, rec), size+len(rec.Payload)
			}
		}
		seq = start
	}
	return found, nil
}

// indexedBefore returns the last indexed sequence under seq.
func (l *Log) indexedBefore(seq uint64) (uint64, bool) {
	l.state.RLock()
	defer l.state.RUnlock()
	for _, s := range slices.Backward(l.segments) {
		if !s.empty() && s.index[0].seq < seq {
			return s.seek(seq - 1).seq, true
		}
	}
	return 0, false
}
