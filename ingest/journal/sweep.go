package journal

import (
	"errors"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"
)

// sweepLoop deletes old segments and syncs the checkpoints once a minute or more often,
// so that a consumer repeats at most a minute's work after a power failure.
func (l *Log) sweepLoop() {
	tick := time.NewTicker(l.opts.sweepInterval())
	defer tick.Stop()
	l.refreshNeeds()
	for {
		select {
		case <-l.quit: // checked first, so that a closed log is not swept
			return
		default:
		}
		select {
		case <-tick.C:
			l.sweep()
			if err := l.syncCheckpoints(); err != nil {
				l.opts.Logger.Warn("journal: checkpoint not synced", "dir", l.dir, "error", err)
			}
		case <-l.sweepSoon:
			l.sweep()
		case <-l.quit:
			return
		}
	}
}

// sweep deletes the segments whose newest record is older than the horizon: the retention, less
// segmentAge and the sweep interval, so that no record of a segment exceeds the retention before
// the next sweep. It keeps segments with records that a consumer has not processed or that must
// be processed again. It also deletes copies of damaged ranges from before the horizon. sweep
// calls Need for processed segments, and deletes nothing while KeepAll returns true.
func (l *Log) sweep() {
	horizon := l.opts.Now().Add(-l.opts.Retention + l.opts.segmentAge() + l.opts.sweepInterval())
	keepAll := l.opts.KeepAll != nil && l.opts.KeepAll()
	if !keepAll {
		l.writing.Lock()
		l.retire(horizon.UnixNano())
		l.writing.Unlock()
	}
	l.refreshNeeds()
	if keepAll {
		return
	}
	for l.drop(horizon.UnixNano(), NotNeeded, ForReplay) {
	}
	l.sweepDamaged(horizon)
	if err := l.sweepDropped(); err != nil {
		l.opts.Logger.Warn("journal: names of deleted segments not removed", "dir", l.dir, "error", err)
	}
}

// refreshNeeds calls Need for processed segments and stores the answers, so that a commit that
// deletes segments does not wait for a database. After an error the remaining answers stay.
func (l *Log) refreshNeeds() {
	if l.opts.Need == nil {
		return
	}
	l.needsRefreshedAt.Store(time.Now().UnixNano())
	for _, s := range l.deletableSegments(math.MaxInt64) {
		l.state.RLock()
		firstSeq, lastSeq := s.firstSeq, s.lastSeq
		l.state.RUnlock()
		need, err := NotNeeded, error(nil)
		if firstSeq <= lastSeq {
			need, err = l.opts.Need(firstSeq, lastSeq)
		}
		if err != nil {
			return
		}
		l.state.Lock()
		s.need, s.needKnown = need, true
		l.state.Unlock()
	}
}

// retire begins a new segment if all records of the newest segment could be deleted, because
// the newest segment itself is never deleted.
func (l *Log) retire(horizon int64) {
	l.state.RLock()
	s := l.segments[len(l.segments)-1]
	retirable := l.file != nil && !s.isEmpty() && s.newest <= horizon && l.isProcessed(s)
	l.state.RUnlock()
	if !retirable {
		return
	}
	if _, err := l.beginSegment(); err != nil {
		l.opts.Logger.Warn("journal: cannot create segment", "dir", l.dir, "error", err)
	}
}

// makeRoom deletes one processed segment of any age: a segment that is not needed or, if the
// segments needed for replay take more than half of the quota, one of these. It reports
// whether it deleted a segment. The caller holds writing.
func (l *Log) makeRoom() bool {
	if l.drop(math.MaxInt64, NotNeeded) {
		return true
	}
	// Begin a new segment, unless Need is set and deleting the newest one would free little.
	if l.opts.Need == nil || l.end >= min(l.opts.segmentBytes, l.opts.MaxBytes)/8 {
		l.retire(math.MaxInt64)
	}
	if l.drop(math.MaxInt64, NotNeeded) {
		return true
	}
	if bytes := l.replayableBytes(); bytes > l.opts.MaxBytes/2 && l.drop(math.MaxInt64, ForReplay) {
		l.opts.Logger.Error("journal: records needed for replay were deleted, because they take more than half of the quota",
			"dir", l.dir, "bytes", bytes, "quota", l.opts.MaxBytes)
		return true
	}
	if l.opts.Need != nil && time.Since(time.Unix(0, l.needsRefreshedAt.Load())) > needInterval {
		signal(l.sweepSoon) // Need may have a new answer
	}
	return false
}

// needInterval is the minimum interval between calls of Need while the log is full.
const needInterval = time.Second

// drop deletes the oldest segment that is processed, has no record later than the horizon,
// and has one of the needs. The newest segment stays: its name preserves the next sequence.
func (l *Log) drop(horizon int64, needs ...Need) bool {
	l.deleting.Lock()
	defer l.deleting.Unlock()
	for _, s := range l.deletableSegments(horizon) {
		l.state.RLock()
		known, need := s.needKnown || l.opts.Need == nil, s.need
		l.state.RUnlock()
		if known && slices.Contains(needs, need) && l.delete(s) {
			return true
		}
	}
	return false
}

// deletableSegments returns the segments, except the newest, that are processed and have no
// record later than the horizon, oldest first.
func (l *Log) deletableSegments(horizon int64) (segments []*segment) {
	l.state.RLock()
	defer l.state.RUnlock()
	for _, s := range l.segments[:len(l.segments)-1] {
		if s.newest <= horizon && l.isProcessed(s) {
			segments = append(segments, s)
		}
	}
	return segments
}

func (l *Log) replayableBytes() (bytes int64) {
	l.state.RLock()
	defer l.state.RUnlock()
	for _, s := range l.segments[:len(l.segments)-1] {
		if s.needKnown && s.need == ForReplay {
			bytes += s.size
		}
	}
	return bytes
}

// delete removes a segment from the log and deletes its file. The name of a segment
// between others is saved first, so that recovery does not report its records as lost;
// if that fails, the segment stays. The caller holds deleting.
func (l *Log) delete(s *segment) bool {
	l.state.RLock()
	oldest := l.segments[0] == s
	l.state.RUnlock()
	if !oldest {
		f, err := l.opts.disk.Open(l.path(s)+droppedSuffix, os.O_RDWR|os.O_CREATE)
		if err == nil {
			err = errors.Join(f.Close(), l.opts.disk.SyncDir(l.dir))
		}
		if err != nil {
			l.opts.Logger.Warn("journal: segment not deleted", "dir", l.dir, "segment", s.String(), "error", err)
			return false
		}
	}
	l.state.Lock()
	l.segments = slices.DeleteFunc(slices.Clone(l.segments), func(candidate *segment) bool { return candidate == s })
	l.state.Unlock()
	// Delete the file durably, before another segment is deleted.
	err := os.Remove(l.path(s))
	if err == nil {
		err = l.opts.disk.SyncDir(l.dir)
	}
	if err != nil {
		l.opts.Logger.Warn("journal: segment not deleted", "dir", l.dir, "segment", s.String(), "error", err)
	}
	return true
}

// isProcessed reports whether every consumer, including consumers that are not open, has
// committed the segment's last record. Without consumers, isProcessed returns false. The
// caller holds state.
func (l *Log) isProcessed(s *segment) bool {
	for _, c := range l.consumers {
		if c.Committed() < s.lastSeq {
			return false
		}
	}
	return len(l.consumers) > 0
}

func (l *Log) sweepDamaged(horizon time.Time) {
	entries, _ := os.ReadDir(l.dir) // after an error, the next sweep deletes the copies
	for _, e := range entries {
		info, err := e.Info()
		if err == nil && strings.HasSuffix(e.Name(), damagedSuffix) && info.ModTime().Before(horizon) {
			_ = os.Remove(filepath.Join(l.dir, e.Name()))
		}
	}
}
