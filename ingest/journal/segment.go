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

// droppedSuffix is appended to the name of a segment that was deleted between others.
const droppedSuffix = ".dropped"

// segment is one file of the log. Log.state guards all fields except the name.
type segment struct {
	segmentName
	scanResult      // of the durable data
	need       Need // the last answer of Options.Need; valid if needKnown
	needKnown  bool // true once Options.Need has returned an answer for the segment
}

// segmentName is a parsed file name. The newest segment is never deleted, so firstSeq
// preserves the next sequence after all records were deleted.
type segmentName struct {
	firstSeq    uint64 // the sequence of the first record
	previousSeq uint64 // the last acknowledged sequence below firstSeq; less than firstSeq-1 if sequences were skipped
	salt        uint32 // the seed of the checksums
}

func newSegmentName(firstSeq, previousSeq uint64) segmentName {
	var salt [4]byte
	rand.Read(salt[:]) // never fails: crypto/rand ends the program instead
	return segmentName{firstSeq, previousSeq, binary.LittleEndian.Uint32(salt[:])}
}

func (s segmentName) String() string {
	return fmt.Sprintf("%020d-%020d-%08x%s", s.firstSeq, s.previousSeq, s.salt, segmentSuffix)
}

func parseSegmentName(s string) (segmentName, error) {
	var n segmentName
	_, err := fmt.Sscanf(s, "%020d-%020d-%08x"+segmentSuffix, &n.firstSeq, &n.previousSeq, &n.salt)
	if err != nil || n.String() != s || n.firstSeq == 0 || n.previousSeq >= n.firstSeq {
		return n, fmt.Errorf("segment name %q: must be firstSeq-previousSeq-salt%s", s, segmentSuffix)
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
		list = append(list, &segment{segmentName: name})
	}
	slices.SortFunc(list, func(a, b *segment) int { return cmp.Compare(a.firstSeq, b.firstSeq) })
	return list, nil
}

// listDropped returns the saved names of segments that were deleted between others, in order.
// It omits the names of segments that still exist.
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

// sweepDropped removes saved names of deleted segments that are no longer needed: the names
// before the oldest segment, and all but the first name between two segments.
func (l *Log) sweepDropped() error {
	l.deleting.Lock()
	defer l.deleting.Unlock()
	names, err := listDropped(l.dir)
	l.state.RLock()
	segments := l.segments
	l.state.RUnlock()
	segmentsBeforeKept := 0 // the number of segments before the last kept name
	for _, name := range names {
		segmentsBefore := slices.IndexFunc(segments, func(s *segment) bool { return s.firstSeq > name.firstSeq })
		if segmentsBefore > segmentsBeforeKept {
			segmentsBeforeKept = segmentsBefore
			continue
		}
		err = errors.Join(err, os.Remove(filepath.Join(l.dir, name.String()+droppedSuffix)))
	}
	return err
}

func (l *Log) path(s *segment) string { return filepath.Join(l.dir, s.String()) }

func (s *segment) isEmpty() bool { return len(s.index) == 0 }

func (s *segment) seek(seq uint64) indexEntry {
	i, found := slices.BinarySearchFunc(s.index, seq, func(entry indexEntry, seq uint64) int {
		return cmp.Compare(entry.seq, seq)
	})
	if !found {
		i--
	}
	return s.index[max(i, 0)]
}

// segmentFor returns the segment for a batch of n bytes: the newest segment, or a new one if the
// newest is full, has a record older than segmentAge, or was abandoned.
func (l *Log) segmentFor(n int64) (*segment, error) {
	l.state.RLock()
	s := l.segments[len(l.segments)-1]
	oldestTime := s.oldest
	l.state.RUnlock()
	if l.file == nil {
		// Scan the abandoned segment again. The name of the next segment shows which record was
		// acknowledged last, so later bytes of the abandoned segment are invalid.
		if err := l.reexamine(s, true); err != nil {
			return nil, err
		}
		nextSegment, err := l.beginSegment()
		if err != nil {
			return nil, err
		}
		l.opts.Logger.Warn("journal: segment replaced", "dir", l.dir, "segment", s.String(), "by", nextSegment.String())
		return nextSegment, nil
	}
	isOld := oldestTime > 0 && oldestTime <= l.opts.Now().Add(-l.opts.segmentAge()).UnixNano()
	if l.end > 0 && (l.end+n > l.opts.segmentBytes || isOld) {
		nextSegment, err := l.beginSegment()
		if err == nil {
			signal(l.sweepSoon)
		}
		return nextSegment, err
	}
	return s, nil
}

// beginSegment durably creates a segment that begins at l.nextSeq, opens it for writing and
// makes it the newest.
func (l *Log) beginSegment() (*segment, error) {
	s := &segment{segmentName: newSegmentName(l.nextSeq, l.lastDurable()), scanResult: scanResult{lastSeq: l.nextSeq - 1}}
	f, err := l.opts.disk.Open(l.path(s), os.O_RDWR|os.O_CREATE|os.O_EXCL)
	if err != nil {
		return nil, fmt.Errorf("create segment: %w", err)
	}
	_ = f.Allocate(l.opts.segmentBytes) // only an optimization: without it, writes allocate
	if err := l.opts.disk.SyncDir(l.dir); err != nil {
		_ = f.Close()
		_ = os.Remove(l.path(s))
		return nil, fmt.Errorf("sync directory: %w", err)
	}
	if l.file != nil {
		_ = l.file.Truncate(l.end) // frees the unused reserved space; the data is already synced
		_ = l.file.Close()
	}
	l.file, l.end = f, 0
	l.state.Lock()
	l.segments = append(l.segments, s)
	l.state.Unlock()
	return s, nil
}

func (l *Log) lastDurable() uint64 {
	l.state.RLock()
	defer l.state.RUnlock()
	return l.durableSeq
}
