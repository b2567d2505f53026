package journal

import "os"

// newest returns the segment that is written to.
func (l *Log) newest() *segment {
	l.state.RLock()
	defer l.state.RUnlock()
	return l.segments[len(l.segments)-1]
}

// writable returns the segment for a batch of n bytes: the newest, or a new one if that is
// full, has a record of segmentAge, or was abandoned.
func (l *Log) writable(n int64) (*segment, error) {
	s := l.newest()
	if l.file == nil {
		return l.replace(s)
	}
	if l.end > 0 && (l.end+n > l.o.SegmentBytes || l.aged(s)) {
		nextSegment, err := l.begin()
		if err == nil {
			signal(l.rotated) // the retention may delete older segments
		}
		return nextSegment, err
	}
	return s, nil
}

// aged reports whether the first record of a segment is as old as segmentAge.
func (l *Log) aged(s *segment) bool {
	l.state.RLock()
	defer l.state.RUnlock()
	return s.oldest > 0 && s.oldest <= l.o.Now().Add(-l.o.segmentAge()).UnixNano()
}

// replace begins a segment after one that was abandoned. The old one is scanned
// again; the name of the new one declares the bytes behind the last acknowledged
// record invalid.
func (l *Log) replace(old *segment) (*segment, error) {
	if err := l.reexamine(old, true); err != nil {
		return nil, err
	}
	s, err := l.begin()
	if err != nil {
		return nil, err
	}
	l.o.Logger.Warn("journal: segment replaced", "dir", l.dir, "segment", old.String(), "by", s.String())
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

// trim truncates the newest segment to its content. Its file stays open for Close.
func (l *Log) trim() error {
	l.writing.Lock()
	defer l.writing.Unlock()
	if l.file == nil {
		return nil
	}
	return l.file.Truncate(l.end)
}

func (l *Log) lastDurable() uint64 {
	l.state.RLock()
	defer l.state.RUnlock()
	return l.durable
}

// remove deletes a segment's file durably, before another one is deleted.
func (l *Log) remove(s *segment) {
	err := os.Remove(l.path(s))
	if err == nil {
		err = l.o.disk.SyncDir(l.dir)
	}
	if err != nil {
		l.o.Logger.Warn("journal: segment not deleted", "dir", l.dir, "segment", s.String(), "error", err)
	}
}
