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

// housekeeping deletes old segments and syncs the checkpoints once a minute or more often,
// so that after a power cut a consumer repeats at most a minute's work.
func (l *Log) housekeeping() {
	tick := time.NewTicker(l.o.sweepInterval())
	defer tick.Stop()
	l.judge()
	for {
		select {
		case <-tick.C:
			l.Sweep()
			if err := l.syncCheckpoints(); err != nil {
				l.o.Logger.Warn("journal: checkpoint not synced", "dir", l.dir, "error", err)
			}
		case <-l.rotated:
			l.Sweep()
		case <-l.quit:
			return
		}
	}
}

// Sweep deletes the segments that have, or would have before the next call, a record older
// than the retention, if all their records are processed by every consumer and not to be
// processed again. It also deletes copies of damaged ranges of that age. It calls Need for
// processed segments. The log calls it after a rotation, when an append found no room, and
// once a minute or more often. It deletes nothing while KeepAll returns true.
func (l *Log) Sweep() {
	l.staging.Lock()
	if l.closed {
		l.staging.Unlock()
		return
	}
	l.wg.Add(1) // Close waits for it
	l.staging.Unlock()
	defer l.wg.Done()
	horizon := l.o.Now().Add(-l.o.Retention + l.o.segmentAge() + l.o.sweepInterval())
	keep := l.o.KeepAll != nil && l.o.KeepAll()
	if !keep {
		l.writing.Lock()
		l.retire(horizon.UnixNano())
		l.writing.Unlock()
	}
	l.judge()
	if keep {
		return
	}
	for l.drop(horizon.UnixNano(), NotNeeded, ForReplay) {
	}
	l.sweepDamaged(horizon)
	if err := l.sweepDropped(); err != nil {
		l.o.Logger.Warn("journal: names of deleted segments not removed", "dir", l.dir, "error", err)
	}
}

// judge calls Need for the processed segments and stores the answers: segments are
// deleted according to them, so that a commit waits for no database. After an error the
// previous answers stay.
func (l *Log) judge() {
	if l.o.Need == nil {
		return
	}
	l.judgedAt.Store(time.Now().UnixNano())
	for _, s := range l.deletable(math.MaxInt64) {
		l.state.RLock()
		firstSeq, lastSeq := s.firstSeq, s.lastSeq
		l.state.RUnlock()
		need, err := NotNeeded, error(nil)
		if firstSeq <= lastSeq {
			need, err = l.o.Need(firstSeq, lastSeq)
		}
		if err != nil {
			return
		}
		l.state.Lock()
		s.need, s.judged = need, true
		l.state.Unlock()
	}
}

// retire begins a new segment if all records of the newest could be deleted, because the
// newest segment never is.
func (l *Log) retire(horizon int64) {
	l.state.RLock()
	s := l.segments[len(l.segments)-1]
	retirable := l.file != nil && !s.empty() && s.newest <= horizon && l.processed(s)
	l.state.RUnlock()
	if !retirable {
		return
	}
	if _, err := l.begin(); err != nil {
		l.o.Logger.Warn("journal: cannot create segment", "dir", l.dir, "error", err)
	}
}

// dropYoung makes room by deleting a processed segment of any age: one that is not
// needed, else one that is needed for replay only, once these take more than half of the
// quota. The caller holds writing.
func (l *Log) dropYoung() bool {
	if l.drop(math.MaxInt64, NotNeeded) {
		return true
	}
	// End the newest segment if that could free more than another small file.
	if l.o.Need == nil || l.end >= min(l.o.SegmentBytes, l.o.MaxBytes)/8 {
		l.retire(math.MaxInt64)
	}
	if l.drop(math.MaxInt64, NotNeeded) {
		return true
	}
	if bytes := l.replayable(); bytes > l.o.MaxBytes/2 && l.drop(math.MaxInt64, ForReplay) {
		l.o.Logger.Error("journal: records needed for replay were deleted, since they take more than half of the quota",
			"dir", l.dir, "bytes", bytes, "quota", l.o.MaxBytes)
		return true
	}
	if l.o.Need != nil && time.Since(time.Unix(0, l.judgedAt.Load())) > judgeAgain {
		signal(l.rotated) // a segment may be needed no longer
	}
	return false
}

// judgeAgain is the interval at which a log without room calls Need.
const judgeAgain = time.Second

// drop deletes the oldest segment that is processed, has no record later than the
// horizon, and has one of the given needs. The newest segment stays: its name preserves
// the next sequence.
func (l *Log) drop(horizon int64, needs ...Need) bool {
	l.deleting.Lock()
	defer l.deleting.Unlock()
	for _, s := range l.deletable(horizon) {
		l.state.RLock()
		known, need := s.judged || l.o.Need == nil, s.need
		l.state.RUnlock()
		if known && slices.Contains(needs, need) && l.delete(s) {
			return true
		}
	}
	return false
}

// deletable returns the segments, except the newest, that are processed and have no
// record later than the horizon, oldest first.
func (l *Log) deletable(horizon int64) (segments []*segment) {
	l.state.RLock()
	defer l.state.RUnlock()
	for _, s := range l.segments[:len(l.segments)-1] {
		if s.newest <= horizon && l.processed(s) {
			segments = append(segments, s)
		}
	}
	return segments
}

// replayable returns how many bytes are kept for replay only.
func (l *Log) replayable() (bytes int64) {
	l.state.RLock()
	defer l.state.RUnlock()
	for _, s := range l.segments[:len(l.segments)-1] {
		if s.judged && s.need == ForReplay {
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
		f, err := l.o.disk.Open(l.path(s)+droppedSuffix, os.O_RDWR|os.O_CREATE)
		if err == nil {
			err = errors.Join(f.Close(), l.o.disk.SyncDir(l.dir))
		}
		if err != nil {
			l.o.Logger.Warn("journal: segment not deleted", "dir", l.dir, "segment", s.String(), "error", err)
			return false
		}
	}
	l.state.Lock()
	l.segments = slices.DeleteFunc(slices.Clone(l.segments), func(candidate *segment) bool { return candidate == s })
	l.gaps = slices.DeleteFunc(l.gaps, func(g Gap) bool { return g.Segment == s.String() })
	l.state.Unlock()
	// Delete the file durably, before another one is deleted.
	err := os.Remove(l.path(s))
	if err == nil {
		err = l.o.disk.SyncDir(l.dir)
	}
	if err != nil {
		l.o.Logger.Warn("journal: segment not deleted", "dir", l.dir, "segment", s.String(), "error", err)
	}
	return true
}

// processed reports whether every consumer has committed the segment's last record.
// Without consumers nothing is processed; a consumer whose checkpoint is in the directory
// counts even if it is not open. The caller holds state.
func (l *Log) processed(s *segment) bool {
	for _, c := range l.consumers {
		if c.Committed() < s.lastSeq {
			return false
		}
	}
	return len(l.consumers) > 0
}

func (l *Log) sweepDamaged(horizon time.Time) {
	entries, err := os.ReadDir(l.dir)
	if err != nil {
		return
	}
	for _, e := range entries {
		info, err := e.Info()
		if err == nil && strings.HasSuffix(e.Name(), damagedSuffix) && info.ModTime().Before(horizon) {
			_ = os.Remove(filepath.Join(l.dir, e.Name()))
		}
	}
}
