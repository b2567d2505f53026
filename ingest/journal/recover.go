package journal

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"math"
	"os"
	"runtime"
	"slices"
	"sync"
	"sync/atomic"
)

// recover restores the log's state from the directory. If the process ends during recover,
// the next start recovers again.
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
	tail, err := l.scanSegments()
	if err != nil {
		return err
	}
	if err := l.beginWriting(tail); err != nil {
		return err
	}
	// Compare the checkpoints with the segments: report processed records that are missing
	// behind the newest segment, and unprocessed records that are missing before the oldest.
	oldest, newest := l.segments[0], l.segments[len(l.segments)-1]
	for _, c := range l.consumers {
		switch done := c.Committed(); {
		case done > l.durableSeq:
			l.reportGap(newest, Gap{newest.String(), newest.size, 0, l.durableSeq + 1, done, missingReason}, nil)
		case done > 0 && done+1 < oldest.firstSeq:
			l.reportGap(oldest, Gap{oldest.String(), 0, 0, done + 1, oldest.firstSeq - 1, missingReason}, nil)
		}
	}
	return nil
}

// missingReason is the reason of a Gap of length 0.
const missingReason = "segment cut or missing"

// scanSegments scans all segments concurrently, one per processor, because they are
// independent. It sets l.durableSeq and returns the size of the newest segment's tail.
func (l *Log) scanSegments() (tail int64, err error) {
	var group sync.WaitGroup
	var claimed atomic.Int64
	errs := make([]error, runtime.GOMAXPROCS(0))
	for worker := range errs {
		group.Go(func() {
			var buf []byte // reused, because new memory costs as much as reading the file
			for i := int(claimed.Add(1)) - 1; i < len(l.segments) && errs[worker] == nil; i = int(claimed.Add(1)) - 1 {
				buf, errs[worker] = l.recoverSegment(i, buf, &tail)
			}
		})
	}
	group.Wait()
	for _, s := range l.segments {
		l.durableSeq = max(l.durableSeq, s.previousSeq, s.lastSeq)
	}
	return tail, errors.Join(errs...)
}

// maxSeq returns the highest sequence that the i-th segment may contain.
func (l *Log) maxSeq(i int) uint64 {
	if i == len(l.segments)-1 {
		return math.MaxUint64
	}
	limit := l.segments[i+1].previousSeq
	for _, d := range l.deleted {
		if d.firstSeq > l.segments[i].firstSeq && d.firstSeq < l.segments[i+1].firstSeq {
			limit = min(limit, d.previousSeq)
		}
	}
	return limit
}

// readWhole reads a file into buf, or into a larger buffer if buf is too small.
func readWhole(path string, buf []byte) ([]byte, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	info, err := f.Stat()
	if err != nil {
		return nil, err
	}
	buf = slices.Grow(buf[:0], int(info.Size()))[:info.Size()]
	_, err = io.ReadFull(f, buf)
	return buf, err
}

// dropEmptyDuplicates removes an empty segment, left by a failed creation, if another segment
// begins at the same sequence.
func (l *Log) dropEmptyDuplicates(list []*segment) ([]*segment, error) {
	for i := len(list) - 1; i > 0; i-- {
		a, b := list[i-1], list[i]
		if a.firstSeq != b.firstSeq {
			continue
		}
		empty := i - 1
		if info, err := os.Stat(l.path(b)); err == nil && info.Size() == 0 {
			empty = i
		} else if info, err := os.Stat(l.path(a)); err != nil || info.Size() > 0 {
			return nil, fmt.Errorf("segments %s and %s begin at the same sequence", a, b)
		}
		if err := os.Remove(l.path(list[empty])); err != nil {
			return nil, fmt.Errorf("remove empty segment: %w", err)
		}
		list = slices.Delete(list, empty, empty+1)
	}
	return list, nil
}

// recoverSegment scans the i-th segment and reports its gaps. The bytes after the last valid
// record are the tail. recoverSegment keeps the tail of the newest segment and stores its
// size in tail; it cuts the tail of any other segment. It returns the buffer for reuse.
func (l *Log) recoverSegment(i int, buf []byte, tail *int64) ([]byte, error) {
	s, limit, newest := l.segments[i], l.maxSeq(i), i == len(l.segments)-1
	data, err := readWhole(l.path(s), buf)
	if err != nil {
		return nil, fmt.Errorf("read segment: %w", err)
	}
	r := scan(data, s.segmentName, limit)
	if r.lastSeq < limit && !newest {
		r.extend(s.segmentName, int64(len(data)), limit)
	}
	l.setScanResult(s, r, data)
	if s.isEmpty() && len(data) > 0 {
		s.newest = l.opts.Now().UnixNano() // age unknown: keep the segment for a full retention
	}
	size := int64(len(data)) - s.size
	if size <= 0 {
		return data, nil
	}
	// Save a copy of the tail before it is cut. After a crash the tail is a record that was
	// not acknowledged, which cannot be distinguished from a damaged acknowledged record.
	l.cut.Add(size)
	if len(bytes.Trim(data[s.size:], "\x00")) > 0 {
		l.saveDamaged(s, s.size, data[s.size:])
	}
	l.opts.Logger.Warn("journal: tail truncated", "dir", l.dir, "segment", s.String(),
		"offset", s.size, "length", size, "reason", s.tail)
	if newest {
		*tail = size
		return data, nil
	}
	// An interrupted cut left the tail: the name of the next segment shows that the tail was
	// not acknowledged.
	return data, l.cutTail(s)
}

// beginWriting opens the newest segment. It creates a segment if the log has none or if
// sequences must be skipped: a record in a lost tail or before a checkpoint may have been
// acknowledged and processed, so its sequence must not be assigned again.
func (l *Log) beginWriting(tail int64) (err error) {
	l.nextSeq = l.durableSeq + 1
	if tail > 0 {
		l.nextSeq += uint64(tail)/headerSize + 1
	}
	for _, c := range l.consumers {
		l.nextSeq = max(l.nextSeq, c.Committed()+1)
	}
	n := len(l.segments)
	if n > 0 && tail == 0 && l.segments[n-1].lastSeq+1 == l.nextSeq {
		newest := l.segments[n-1]
		if l.file, err = l.opts.disk.Open(l.path(newest), os.O_RDWR); err != nil {
			return fmt.Errorf("open segment: %w", err)
		}
		// Data that a killed process wrote may be only in the kernel's memory.
		if err := l.file.Datasync(); err != nil {
			return fmt.Errorf("sync segment: %w", err)
		}
		l.end = newest.size
		return nil
	}
	// Create the next segment before the tail of the last one is cut, so that skipped
	// sequences stay skipped if the process ends in between.
	if _, err := l.beginSegment(); err != nil || n == 0 {
		return err
	}
	return l.cutTail(l.segments[n-1])
}

// cutTail shortens a segment to its valid records and syncs it, because data that a killed
// process wrote may be only in the kernel's memory.
func (l *Log) cutTail(s *segment) error {
	f, err := l.opts.disk.Open(l.path(s), os.O_RDWR)
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
