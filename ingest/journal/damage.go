package journal

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"slices"
)

const damagedSuffix = ".bad"

// Gap is a range of a segment without a valid record that valid records follow. The bytes
// stay in the segment and are copied to a file next to it.
type Gap struct {
	Segment     string // file name
	Offset      int64  // bytes from the segment's start
	Length      int64  // bytes; 0 when the segment ends too early
	First, Last uint64 // the missing sequences; none when First > Last
	Reason      string
}

// Gaps returns the damaged ranges found since Open, by recovery or by a reader,
// oldest segment first. A Gap is removed with its segment.
func (l *Log) Gaps() []Gap {
	l.state.RLock()
	defer l.state.RUnlock()
	return slices.Clone(l.gaps)
}

// reportGap logs a damaged range once and saves a copy of its bytes from data.
func (l *Log) reportGap(s *segment, h badRange, data []byte) {
	g := Gap{s.String(), h.off, h.end - h.off, h.firstSeq, h.lastSeq, h.reason}
	if slices.Contains(l.gaps, g) {
		return
	}
	l.gaps = append(l.gaps, g)
	log := l.o.Logger.Error
	if l.saveDamaged(s, h.off, data[min(h.off, int64(len(data))):min(h.end, int64(len(data)))]) {
		log = l.o.Logger.Warn // known from an earlier start
	}
	log("journal: damaged range skipped", "dir", l.dir, "segment", g.Segment, "offset", g.Offset,
		"length", g.Length, "first_missing", g.First, "last_missing", g.Last, "reason", g.Reason)
}

// saveDamaged writes damaged bytes to a file next to their segment and reports whether it
// existed already. A failure is only logged: the log works without.
func (l *Log) saveDamaged(s *segment, off int64, bad []byte) (known bool) {
	path := fmt.Sprintf("%s.%d%s", l.path(s), off, damagedSuffix)
	f, err := os.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o640)
	if errors.Is(err, fs.ErrExist) {
		return true
	}
	if err == nil {
		_, err = f.Write(bad)
		err = errors.Join(err, f.Sync(), f.Close(), os.Chtimes(path, l.o.Now(), l.o.Now()))
	}
	if err != nil {
		l.o.Logger.Warn("journal: cannot save damaged range", "file", path, "error", err)
	}
	return false
}

// reexamine scans a segment again in which a reader found damage or whose last sync failed,
// and reports its gaps. With uncached it first makes the kernel drop its pages, which after a
// failed sync can hold data that the disk does not.
func (l *Log) reexamine(s *segment, uncached bool) error {
	l.state.Lock()
	defer l.state.Unlock()
	if s.empty() {
		return nil
	}
	data, err := l.readDurable(s, uncached)
	if err != nil {
		return fmt.Errorf("read segment: %w", err)
	}
	v := scan(data, s.salt, s.firstSeq, s.lastSeq)
	size, lastSeq := s.size, s.lastSeq
	s.adopt(v, size)
	if v.lastSeq < lastSeq || v.end < size {
		s.extend(v, size, lastSeq)
	}
	for _, h := range s.badRanges {
		l.reportGap(s, h, data)
	}
	return nil
}

func (l *Log) readDurable(s *segment, uncached bool) ([]byte, error) {
	f, err := l.o.disk.Open(l.path(s), os.O_RDONLY)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	if uncached {
		_ = f.Uncache() // advice; the read below is worth having without it
	}
	data := make([]byte, s.size)
	n, err := f.ReadAt(data, 0)
	if n == len(data) || isEOF(err) {
		return data[:n], nil
	}
	return nil, err
}
