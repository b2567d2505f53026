package journal

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"slices"
)

const damagedSuffix = ".bad"

// Gap is a damaged range of a segment, followed by valid records or by the end of a segment
// that lost records. The bytes stay in the segment and are copied to a file in the same
// directory.
type Gap struct {
	Segment     string // file name
	Offset      int64  // bytes from the segment's start
	Length      int64  // bytes; 0 if the segment ends too early
	First, Last uint64 // the missing sequences; none if First > Last
	Reason      string
}

// Gaps returns the damaged ranges that recovery or a reader has found since Open, oldest
// segment first. A Gap is removed with its segment.
func (l *Log) Gaps() (gaps []Gap) {
	l.state.RLock()
	defer l.state.RUnlock()
	for _, s := range l.segments {
		gaps = append(gaps, s.gaps...)
	}
	return gaps
}

// setScanResult replaces the scan result of a segment and reports new gaps.
func (l *Log) setScanResult(s *segment, r scanResult, data []byte) {
	found := r.gaps
	r.gaps, r.newest = s.gaps, max(s.newest, r.newest)
	s.scanResult = r
	for _, g := range found {
		l.reportGap(s, g, data)
	}
}

// reportGap adds a gap to a segment once, logs it and saves a copy of its bytes from data.
func (l *Log) reportGap(s *segment, g Gap, data []byte) {
	if slices.Contains(s.gaps, g) {
		return
	}
	s.gaps = append(s.gaps, g)
	log := l.opts.Logger.Error
	size := int64(len(data))
	if l.saveDamaged(s, g.Offset, data[min(g.Offset, size):min(g.Offset+g.Length, size)]) {
		log = l.opts.Logger.Warn // already reported by an earlier run
	}
	log("journal: damaged range skipped", "dir", l.dir, "segment", g.Segment, "offset", g.Offset,
		"length", g.Length, "first_missing", g.First, "last_missing", g.Last, "reason", g.Reason)
}

// saveDamaged writes damaged bytes to a file in the directory of the log, and reports whether
// the file already existed. A failure is only logged: the log works without the copy.
func (l *Log) saveDamaged(s *segment, off int64, damaged []byte) (known bool) {
	path := fmt.Sprintf("%s.%d%s", l.path(s), off, damagedSuffix)
	f, err := os.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o640)
	if errors.Is(err, fs.ErrExist) {
		return true
	}
	if err == nil {
		_, err = f.Write(damaged)
		err = errors.Join(err, f.Sync(), f.Close(), os.Chtimes(path, l.opts.Now(), l.opts.Now()))
	}
	if err != nil {
		l.opts.Logger.Warn("journal: cannot save damaged range", "file", path, "error", err)
	}
	return false
}

// reexamine scans a segment again after a reader found damage or a sync failed, and reports
// its gaps. If uncached is set, reexamine makes the kernel drop the pages of the file first:
// after a failed sync they may differ from the data on the disk.
func (l *Log) reexamine(s *segment, uncached bool) error {
	l.state.Lock()
	defer l.state.Unlock()
	if s.isEmpty() {
		return nil
	}
	data, err := l.readDurable(s, uncached)
	if err != nil {
		return fmt.Errorf("read segment: %w", err)
	}
	r := scan(data, s.segmentName, s.lastSeq)
	if r.lastSeq < s.lastSeq || r.size < s.size {
		r.extend(s.segmentName, s.size, s.lastSeq)
	}
	l.setScanResult(s, r, data)
	return nil
}

func (l *Log) readDurable(s *segment, uncached bool) ([]byte, error) {
	f, err := l.opts.disk.Open(l.path(s), os.O_RDONLY)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	if uncached {
		_ = f.Uncache() // advisory: the read is useful without it
	}
	data := make([]byte, s.size)
	n, err := f.ReadAt(data, 0)
	if n == len(data) || isEOF(err) {
		return data[:n], nil
	}
	return nil, err
}
