package journal

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"slices"
)

// Read returns the record with a sequence, or ErrNotFound.
func (l *Log) Read(seq uint64) (Record, error) {
	c := &cursor{log: l, seq: seq}
	defer c.close()
	rec, err := c.readNext()
	if errors.Is(err, io.EOF) || err == nil && rec.Seq != seq {
		return Record{}, fmt.Errorf("journal: read %d: %w", seq, ErrNotFound)
	}
	return rec, err
}

// Range calls fn for every durable record from fromSeq to toSeq, both included, in
// order, and returns the first error of fn. It skips damaged ranges and deleted records,
// including records that are deleted while Range runs.
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

// Before returns records with a sequence below seq, newest first, up to limit records and
// about maxBytes. If seq is 0, Before starts at the newest record. For the next page, pass the
// sequence of the last returned record. When ctx ends, Before returns the records found so
// far and an error that wraps ctx.Err().
func (l *Log) Before(ctx context.Context, seq uint64, limit, maxBytes int) ([]Record, error) {
	if seq == 0 {
		seq = l.lastDurable() + 1
	}
	var found []Record
	for size := 0; len(found) < limit && size < maxBytes; {
		start, ok := l.lastIndexedBefore(seq)
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

// lastIndexedBefore returns the sequence of the last index entry below seq, or false if there is
// none.
func (l *Log) lastIndexedBefore(seq uint64) (uint64, bool) {
	l.state.RLock()
	defer l.state.RUnlock()
	for _, s := range slices.Backward(l.segments) {
		if !s.isEmpty() && s.index[0].seq < seq {
			return s.seek(seq - 1).seq, true
		}
	}
	return 0, false
}

// window is the number of bytes that a cursor reads at a time.
const window = 64 << 10

func isEOF(err error) bool { return errors.Is(err, io.EOF) || errors.Is(err, io.ErrUnexpectedEOF) }

// cursor reads durable records in order, with its own file descriptor. Not safe for
// concurrent use.
type cursor struct {
	log *Log
	seq uint64 // lower bound of the sequence of the next record

	seg         *segment
	f           file
	off, end    int64 // the position in seg, and the end of its durable data
	win         []byte
	winOff      int64
	expectedSeq uint64 // the sequence of the next record in seg; 0 if unknown, after a gap
}

func (c *cursor) close() {
	if c.f != nil {
		_ = c.f.Close()
	}
	c.f, c.seg, c.win = nil, nil, c.win[:0]
}

func (c *cursor) moveTo(seq uint64) {
	if seq != c.seq {
		c.close()
		c.seq, c.off, c.end = seq, 0, 0
	}
}

// readNext returns the next durable record, or io.EOF after the last one. It skips damaged
// ranges and reports them as gaps.
func (c *cursor) readNext() (Record, error) {
	for examined := false; ; {
		if c.seg == nil || c.off >= c.end {
			if err := c.locate(); err != nil {
				return Record{}, err
			}
		}
		rec, n, err := c.parse()
		if bad, ok := errors.AsType[damage](err); ok {
			if err := c.skipDamaged(bad, &examined); err != nil {
				return Record{}, err
			}
			continue
		}
		if err != nil {
			return Record{}, fmt.Errorf("journal: read segment: %w", err)
		}
		c.off, c.expectedSeq = c.off+int64(n), rec.Seq+1
		if rec.Seq < c.seq {
			continue
		}
		c.seq = rec.Seq + 1
		rec.Payload = bytes.Clone(rec.Payload)
		return rec, nil
	}
}

// locate opens the segment with the record c.seq or, if there is none, the next record.
func (c *cursor) locate() error {
	for {
		s, entry, end, err := c.log.find(c.seq)
		if err != nil {
			return err
		}
		if s == c.seg {
			if c.end = end; c.off >= end {
				return fmt.Errorf("journal: read segment %s: no record %d", s, c.seq)
			}
			return nil
		}
		f, err := c.log.opts.disk.Open(c.log.path(s), os.O_RDONLY)
		if errors.Is(err, os.ErrNotExist) && c.log.isDropped(s) {
			continue // the segment was deleted in the meantime
		}
		if err != nil {
			return fmt.Errorf("journal: open segment: %w", err)
		}
		c.close()
		c.seg, c.f, c.off, c.expectedSeq, c.end = s, f, entry.off, entry.seq, end
		return nil
	}
}

// find returns the first segment with seq or a later record, the index entry from which to
// read, and the end of the segment's durable data.
func (l *Log) find(seq uint64) (s *segment, entry indexEntry, end int64, err error) {
	l.state.RLock()
	defer l.state.RUnlock()
	i, _ := slices.BinarySearchFunc(l.segments, seq, func(s *segment, seq uint64) int {
		if s.lastSeq < seq {
			return -1
		}
		return 1
	})
	for ; i < len(l.segments); i++ {
		if s := l.segments[i]; !s.isEmpty() && s.lastSeq >= seq {
			return s, s.seek(seq), s.size, nil
		}
	}
	return nil, indexEntry{}, 0, io.EOF
}

// isDropped reports whether a segment has been removed from the log.
func (l *Log) isDropped(s *segment) bool {
	l.state.RLock()
	defer l.state.RUnlock()
	return !slices.Contains(l.segments, s)
}

// parse reads the record at c.off. Like recovery, it verifies the record and its sequence.
func (c *cursor) parse() (Record, int, error) {
	head, err := c.peek(headerSize)
	if err != nil {
		return Record{}, 0, err
	}
	size, err := recordSize(head)
	if err != nil {
		return Record{}, 0, err
	}
	b, err := c.peek(size)
	if err != nil {
		return Record{}, 0, err
	}
	rec, n, err := parseRecord(b, c.seg.salt)
	if err == nil && c.expectedSeq != 0 && rec.Seq != c.expectedSeq {
		return Record{}, 0, damage("record out of sequence")
	}
	return rec, n, err
}

// peek returns the n bytes at c.off, or fewer at the end of the durable data.
func (c *cursor) peek(n int) ([]byte, error) {
	n = int(min(int64(n), c.end-c.off))
	offset := c.off - c.winOff
	if offset < 0 || offset+int64(n) > int64(len(c.win)) {
		size := int(min(int64(max(n, window)), c.end-c.off))
		c.win = slices.Grow(c.win[:0], size)[:size]
		got, err := c.f.ReadAt(c.win, c.off)
		c.win, c.winOff, offset = c.win[:got], c.off, 0
		if err != nil && !isEOF(err) { // parse reports a file shorter than the durable data
			return nil, err
		}
	}
	return c.win[offset:min(offset+int64(n), int64(len(c.win)))], nil
}

// skipDamaged moves past the gap at c.off. If no gap is known at c.off, skipDamaged scans the
// segment again, because the disk has lost data since Open.
func (c *cursor) skipDamaged(bad damage, examined *bool) error {
	for {
		c.log.state.RLock()
		gaps := c.seg.gaps
		c.log.state.RUnlock()
		i := slices.IndexFunc(gaps, func(g Gap) bool { return c.off >= g.Offset && c.off < g.Offset+g.Length })
		if i >= 0 {
			c.off, c.expectedSeq = gaps[i].Offset+gaps[i].Length, 0
			return nil
		}
		if *examined {
			return fmt.Errorf("journal: read segment %s at %d: %w", c.seg, c.off, bad)
		}
		*examined = true
		if err := c.log.reexamine(c.seg, false); err != nil {
			return fmt.Errorf("journal: %w", err)
		}
	}
}
