package journal

import (
	"bytes"
	"encoding/binary"
	"fmt"
	"io"
	"math"
	"os"
	"runtime"
	"slices"
	"sync"
)

// recover restores the log's state from the directory. It can be interrupted at any point
// and repeated.
func (l *Log) recover() error {
	if err := l.loadCheckpoints(); err != nil {
		return err
	}
	list, err := listSegments(l.dir)
	if err != nil {
		return err
	}
	if l.segments, err = l.dropEmptyDuplicates(list); err != nil {
		return err
	}
	if l.deleted, err = listDropped(l.dir); err != nil {
		return err
	}
	tail, ahead, buffers := int64(0), make([]chan scanned, len(l.segments)), new(sync.Pool)
	for i, s := range l.segments {
		l.scanAhead(ahead, i, buffers)
		found := <-ahead[i]
		if tail, err = l.survey(s, i, found); err != nil {
			return err
		}
		buffers.Put(&found.data)
		l.durable = max(l.durable, s.follows, s.lastSeq)
	}
	if err := l.beginWriting(tail); err != nil {
		return err
	}
	// Report records that are in no segment, although according to a checkpoint they were
	// processed, or are the next to be processed.
	oldest, newest := l.segments[0], l.segments[len(l.segments)-1]
	for _, c := range l.consumers {
		const reason = "segment cut or missing"
		switch done := c.Committed(); {
		case done > l.durable:
			l.reportGap(newest, badRange{newest.size, newest.size, l.durable + 1, done, reason}, nil)
		case done > 0 && done+1 < oldest.firstSeq:
			l.reportGap(oldest, badRange{0, 0, done + 1, oldest.firstSeq - 1, reason}, nil)
		}
	}
	return nil
}

// scanned is the content of a segment's file and the result of scanning it.
type scanned struct {
	data  []byte
	found survey
	err   error
}

// scanAhead scans the segments from the i-th on concurrently, one per processor, because
// they are independent. It reuses buffers: new memory costs as much as reading the
// file.
func (l *Log) scanAhead(ahead []chan scanned, i int, buffers *sync.Pool) {
	for k := i; k < min(i+runtime.GOMAXPROCS(0), len(ahead)); k++ {
		if ahead[k] != nil {
			continue
		}
		ahead[k] = make(chan scanned, 1)
		go func(s *segment, limit uint64) {
			var buffer []byte
			if used, ok := buffers.Get().(*[]byte); ok {
				buffer = *used
			}
			data, err := readWhole(l.path(s), buffer)
			ahead[k] <- scanned{data, scan(data, s.salt, s.firstSeq, limit), err}
		}(l.segments[k], l.limit(k))
	}
}

// limit returns the last sequence that the i-th segment may have.
func (l *Log) limit(i int) uint64 {
	if i == len(l.segments)-1 {
		return math.MaxUint64
	}
	limit := l.segments[i+1].follows
	for _, d := range l.deleted {
		if d.firstSeq > l.segments[i].firstSeq && d.firstSeq < l.segments[i+1].firstSeq {
			limit = min(limit, d.follows)
		}
	}
	return limit
}

// readWhole reads a file into the buffer, or into a larger one if it is too small.
func readWhole(path string, buffer []byte) ([]byte, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer func() { _ = f.Close() }()
	info, err := f.Stat()
	if err != nil {
		return nil, err
	}
	buffer = slices.Grow(buffer[:0], int(info.Size()))[:info.Size()]
	_, err = io.ReadFull(f, buffer)
	return buffer, err
}

// dropEmptyDuplicates removes an empty segment, left by a failure during its creation, if
// another one begins at the same sequence.
func (l *Log) dropEmptyDuplicates(list []*segment) ([]*segment, error) {
	for i := 1; i < len(list); i++ {
		a, b := list[i-1], list[i]
		if a.firstSeq != b.firstSeq {
			continue
		}
		lost := slices.IndexFunc([]*segment{a, b}, func(s *segment) bool {
			info, err := os.Stat(l.path(s))
			return err == nil && info.Size() == 0
		})
		if lost < 0 {
			return nil, fmt.Errorf("%s and %s begin at the same sequence", a, b)
		}
		offset := i - 1 + lost
		if err := os.Remove(l.path(list[offset])); err != nil {
			return nil, fmt.Errorf("remove empty segment: %w", err)
		}
		list = slices.Delete(list, offset, offset+1)
		i--
	}
	return list, nil
}

// survey adopts the scan of the i-th segment, reports its gaps and returns the number
// of bytes behind its last valid record if nothing valid follows them.
// Only the newest segment has such a tail left: the others are cut here.
func (l *Log) survey(s *segment, i int, start scanned) (tail int64, err error) {
	if start.err != nil {
		return 0, fmt.Errorf("read segment: %w", start.err)
	}
	data, v, limit, newest := start.data, start.found, l.limit(i), i == len(l.segments)-1
	s.adopt(v, v.end)
	if s.empty() && len(data) > 0 {
		s.newest = l.o.Now().UnixNano() // age unknown: keep it for a full retention
	}
	if !newest && v.lastSeq < limit {
		s.extend(v, int64(len(data)), limit)
	}
	for _, h := range s.badRanges {
		l.reportGap(s, h, data)
	}
	tail = int64(len(data)) - s.size
	if tail > 0 {
		// Save a copy of the bytes after the last valid record before they are cut. After a
		// crash they are a record that was not acknowledged, which cannot be distinguished
		// from a damaged record that was acknowledged.
		l.cut.Add(tail)
		if len(bytes.Trim(data[s.size:], "\x00")) > 0 {
			l.saveDamaged(s, s.size, data[s.size:])
		}
		l.o.Logger.Warn("journal: tail truncated", "dir", l.dir, "segment", s.String(),
			"offset", s.size, "length", tail, "reason", v.tail)
	}
	if newest || tail == 0 {
		return tail, nil
	}
	// An interrupted cut left it: the next segment declares that nothing here was
	// acknowledged.
	return 0, l.cutTail(s)
}

// adopt takes over the results of a scan.
func (s *segment) adopt(v survey, size int64) {
	s.lastSeq, s.index, s.badRanges, s.size = v.lastSeq, v.index, v.badRanges, size
	s.oldest, s.newest = v.oldest, max(s.newest, v.newest)
}

// extend adds the range behind the last valid record as a bad range, because
// records up to limit were acknowledged and are missing. Its length is 0 if the
// file ends there.
func (s *segment) extend(v survey, size int64, limit uint64) {
	reason := v.tail
	if reason == "" {
		reason = "segment cut or missing"
	}
	s.badRanges = append(s.badRanges, badRange{v.end, max(size, v.end), v.lastSeq + 1, limit, reason})
	s.size = max(size, v.end)
}

// beginWriting opens the newest segment, or a new one if there is none or if
// sequences must be skipped: a record in a lost tail or behind a checkpoint may
// have been acknowledged and processed, so its sequence is not used again.
func (l *Log) beginWriting(tail int64) (err error) {
	l.nextSeq = l.durable + 1
	if tail > 0 {
		l.nextSeq += uint64(tail)/headerSize + 1
	}
	for _, c := range l.consumers {
		l.nextSeq = max(l.nextSeq, c.Committed()+1)
	}
	n := len(l.segments)
	if n > 0 && tail == 0 && l.segments[n-1].lastSeq+1 == l.nextSeq {
		newest := l.segments[n-1]
		if l.file, err = l.o.disk.Open(l.path(newest), os.O_RDWR); err != nil {
			return fmt.Errorf("open segment: %w", err)
		}
		// Data of a killed process may be in the kernel only.
		if err := l.file.Datasync(); err != nil {
			return fmt.Errorf("sync segment: %w", err)
		}
		l.end = newest.size
		return nil
	}
	// Create the next segment before the tail of the last one is cut, so that skipped
	// sequences stay skipped if that is interrupted.
	s, file, err := l.create(l.nextSeq, l.durable)
	if err != nil {
		return err
	}
	l.segments, l.file = append(l.segments, s), file
	if n == 0 {
		return nil
	}
	return l.cutTail(l.segments[n-1])
}

// cutTail shortens a segment to its valid records and syncs it, because data of a killed
// process may be in the kernel only.
func (l *Log) cutTail(s *segment) error {
	f, err := l.o.disk.Open(l.path(s), os.O_RDWR)
	if err != nil {
		return fmt.Errorf("open segment: %w", err)
	}
	defer f.Close()
	if err := f.Truncate(s.size); err != nil {
		return fmt.Errorf("cut segment: %w", err)
	}
	if err := f.Datasync(); err != nil {
		return fmt.Errorf("sync segment: %w", err)
	}
	return nil
}

// indexInterval is the distance between two entries of a segment's index, in bytes.
const indexInterval = 64 << 10

// indexEntry is the offset of the record seq.
type indexEntry struct {
	seq uint64
	off int64
}

// badRange is a range of a segment that holds no valid record, and the sequences
// that are missing because of it (none when first > last).
type badRange struct {
	off, end          int64
	firstSeq, lastSeq uint64
	reason            string
}

// survey is the result of scanning a segment.
type survey struct {
	end       int64  // the end of the last valid record
	lastSeq   uint64 // its sequence; one less than the segment's first if there is none
	oldest    int64  // the time of the first record, Unix ns; 0 when there is none
	newest    int64  // the latest time of a record, Unix ns
	index     []indexEntry
	badRanges []badRange // between valid records, in order
	tail      string     // why the bytes after end are invalid; empty if there are none
}

// scan reads a segment with sequences from first to at most limit. They are contiguous, so
// an intact record in the wrong place is refused like a damaged one.
func scan(data []byte, salt uint32, firstSeq, limit uint64) survey {
	s := survey{lastSeq: firstSeq - 1}
	for off := 0; off < len(data); {
		rec, n, err := parseRecord(data[off:], salt)
		if err == nil && rec.Seq == s.lastSeq+1 && rec.Seq <= limit {
			if len(s.index) == 0 {
				s.oldest = rec.Time.UnixNano()
			}
			s.newest = max(s.newest, rec.Time.UnixNano())
			s.index = addToIndex(s.index, rec.Seq, int64(off))
			off += n
			s.lastSeq, s.end = rec.Seq, int64(off)
			continue
		}
		reason := "record out of sequence"
		if err != nil {
			reason = err.Error()
		}
		offset, seq := resync(data, off, salt, s.lastSeq, limit)
		if offset < 0 {
			s.tail = reason
			break
		}
		s.badRanges = append(s.badRanges, badRange{int64(off), int64(offset), s.lastSeq + 1, seq - 1, reason})
		s.lastSeq, off = seq-1, offset
	}
	return s
}

func addToIndex(index []indexEntry, seq uint64, off int64) []indexEntry {
	if n := len(index); n > 0 && off-index[n-1].off < indexInterval {
		return index
	}
	return append(index, indexEntry{seq, off})
}

// resync searches for the next valid record after the bad one at from, and returns its
// offset and sequence, or -1. The skipped bytes limit the sequence of a candidate: that
// excludes nearly all false ones before their checksum is computed.
func resync(data []byte, start int, salt uint32, lastSeq, limit uint64) (int, uint64) {
	for off := start + 1; off+headerSize <= len(data); off++ {
		seq := binary.LittleEndian.Uint64(data[off+8:])
		room := uint64(off-start) / headerSize
		if seq <= lastSeq || seq-lastSeq > room+1 || seq > limit {
			continue
		}
		if _, _, err := parseRecord(data[off:], salt); err == nil {
			return off, seq
		}
	}
	return -1, 0
}
