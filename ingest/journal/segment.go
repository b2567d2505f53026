package journal

import (
	"cmp"
	"crypto/rand"
	"encoding/binary"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
)

const segmentSuffix = ".v1.segment"

// droppedSuffix follows the name of a segment that was deleted between others.
const droppedSuffix = ".dropped"

// segment is one file of the log. Its fields, but the name, are guarded by
// Log.state.
type segment struct {
	segmentName
	lastSeq   uint64       // the last valid record's sequence; first-1 when there is none
	size      int64        // bytes that are durable, bad ranges included
	oldest    int64        // the time of its first record, Unix ns; 0 when there is none
	newest    int64        // the latest time of a record, Unix ns
	index     []indexEntry // where to start reading for a sequence; empty when there are no records
	badRanges []badRange
	need      Need // what it is needed for, if judged
	judged    bool // after it was processed
}

// segmentName is a parsed file name. The newest segment is never deleted, so first
// preserves the next sequence when no record is left.
type segmentName struct {
	firstSeq uint64 // sequence of its first record
	follows  uint64 // the last sequence acknowledged before it: less than first-1 where numbers were given up
	salt     uint32 // seed of its checksums
}

func newSegmentName(firstSeq, follows uint64) segmentName {
	var salt [4]byte
	rand.Read(salt[:]) // never fails: crypto/rand ends the program instead
	return segmentName{firstSeq, follows, binary.LittleEndian.Uint32(salt[:])}
}

func (s segmentName) String() string {
	return fmt.Sprintf("%020d-%020d-%08x%s", s.firstSeq, s.follows, s.salt, segmentSuffix)
}

func parseSegmentName(s string) (segmentName, error) {
	var n segmentName
	_, err := fmt.Sscanf(s, "%020d-%020d-%08x"+segmentSuffix, &n.firstSeq, &n.follows, &n.salt)
	if err != nil || n.String() != s || n.firstSeq == 0 || n.follows >= n.firstSeq {
		return n, fmt.Errorf("segment name %q: want first-follows-salt%s", s, segmentSuffix)
	}
	return n, nil
}

// listSegments returns the segments of dir, oldest first. A segment with an unknown
// version or name is an error: if it were skipped, its sequences could be reused.
func listSegments(dir string) ([]*segment, error) {
	entries, err := os.ReadDir(dir)
	if err != nil {
		return nil, fmt.Errorf("list segments: %w", err)
	}
	var list []*segment
	for _, e := range entries {
		if !strings.HasSuffix(e.Name(), ".segment") {
			continue
		}
		name, err := parseSegmentName(e.Name())
		if err != nil {
			return nil, err
		}
		list = append(list, &segment{segmentName: name, lastSeq: name.firstSeq - 1})
	}
	slices.SortFunc(list, func(a, b *segment) int { return cmp.Compare(a.firstSeq, b.firstSeq) })
	return list, nil
}

// listDropped returns the names of the segments that were deleted between others, in
// order. One whose segment is there was not deleted.
func listDropped(dir string) (names []segmentName, err error) {
	found, err := filepath.Glob(filepath.Join(dir, "*"+segmentSuffix+droppedSuffix))
	if err != nil {
		return nil, fmt.Errorf("list deleted segments: %w", err)
	}
	for _, path := range found {
		name, err := parseSegmentName(strings.TrimSuffix(filepath.Base(path), droppedSuffix))
		if err != nil {
			return nil, err
		}
		if _, err := os.Stat(strings.TrimSuffix(path, droppedSuffix)); err != nil {
			names = append(names, name)
		}
	}
	slices.SortFunc(names, func(a, b segmentName) int { return cmp.Compare(a.firstSeq, b.firstSeq) })
	return names, nil
}

// sweepDropped removes the names of deleted segments that are not needed any more: those
// before the oldest segment, and all but the first between two segments.
func (l *Log) sweepDropped() error {
	l.deleting.Lock()
	defer l.deleting.Unlock()
	names, err := listDropped(l.dir)
	l.state.RLock()
	segments := l.segments
	l.state.RUnlock()
	named := 0 // the number of segments before the last kept name
	for _, name := range names {
		segmentsBefore := slices.IndexFunc(segments, func(s *segment) bool { return s.firstSeq > name.firstSeq })
		if segmentsBefore > named {
			named = segmentsBefore
			continue
		}
		err = errors.Join(err, os.Remove(filepath.Join(l.dir, name.String()+droppedSuffix)))
	}
	return err
}

func (l *Log) path(s *segment) string { return filepath.Join(l.dir, s.String()) }

// create creates a segment durably and opens it for writing.
func (l *Log) create(firstSeq, follows uint64) (*segment, file, error) {
	s := &segment{segmentName: newSegmentName(firstSeq, follows), lastSeq: firstSeq - 1}
	f, err := l.o.disk.Open(l.path(s), os.O_RDWR|os.O_CREATE|os.O_EXCL)
	if err != nil {
		return nil, nil, fmt.Errorf("create segment: %w", err)
	}
	// An optimization: if it is refused, writing allocates.
	_ = f.Allocate(l.o.SegmentBytes)
	if err := l.o.disk.SyncDir(l.dir); err != nil {
		_ = f.Close()
		_ = os.Remove(l.path(s))
		return nil, nil, fmt.Errorf("sync directory: %w", err)
	}
	return s, f, nil
}

func (s *segment) empty() bool { return len(s.index) == 0 }

// seek returns the last index entry at or before seq.
func (s *segment) seek(seq uint64) indexEntry {
	i, found := slices.BinarySearchFunc(s.index, seq, func(m indexEntry, seq uint64) int { return cmp.Compare(m.seq, seq) })
	if !found {
		i--
	}
	return s.index[max(i, 0)]
}

// writable returns the segment for a batch of n bytes: the newest, or a new one if that is
// full, has a record of segmentAge, or was abandoned.
func (l *Log) writable(n int64) (*segment, error) {
	l.state.RLock()
	s := l.segments[len(l.segments)-1]
	oldest := s.oldest
	l.state.RUnlock()
	if l.file == nil {
		// Scan the abandoned segment again. The name of the next one declares the bytes
		// behind the last acknowledged record invalid.
		if err := l.reexamine(s, true); err != nil {
			return nil, err
		}
		nextSegment, err := l.begin()
		if err != nil {
			return nil, err
		}
		l.o.Logger.Warn("journal: segment replaced", "dir", l.dir, "segment", s.String(), "by", nextSegment.String())
		return nextSegment, nil
	}
	aged := func() bool { return oldest > 0 && oldest <= l.o.Now().Add(-l.o.segmentAge()).UnixNano() }
	if l.end > 0 && (l.end+n > l.o.SegmentBytes || aged()) {
		nextSegment, err := l.begin()
		if err == nil {
			signal(l.rotated) // the retention may delete older segments
		}
		return nextSegment, err
	}
	return s, nil
}

// begin creates the segment for l.next and makes it the newest.
func (l *Log) begin() (*segment, error) {
	s, file, err := l.create(l.nextSeq, l.lastDurable())
	if err != nil {
		return nil, err
	}
	if l.file != nil {
		_ = l.file.Truncate(l.end) // frees what was reserved and not used; the data is synced
		_ = l.file.Close()
	}
	l.file, l.end = file, 0
	l.state.Lock()
	l.segments = append(l.segments, s)
	l.state.Unlock()
	return s, nil
}

func (l *Log) lastDurable() uint64 {
	l.state.RLock()
	defer l.state.RUnlock()
	return l.durable
}
