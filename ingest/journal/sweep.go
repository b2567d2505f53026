package journal

import (
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"
)

// housekeeping deletes old segments and syncs the checkpoints about once a minute,
// so that after a power cut a consumer repeats at most a minute's work.
func (l *Log) housekeeping() {
	tick := time.NewTicker(time.Minute)
	defer tick.Stop()
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

// Sweep deletes the segments whose newest record is older than the retention
// and processed by every consumer, and copies of damaged ranges of that age.
// The log calls it after a rotation and about once a minute. It does nothing while
// KeepAll says so.
func (l *Log) Sweep() {
	if l.o.KeepAll != nil && l.o.KeepAll() || !l.acquire() {
		return
	}
	defer l.wg.Done()
	horizon := l.o.Now().Add(-l.o.Retention)
	l.writing.Lock()
	l.retire(horizon.UnixNano())
	l.writing.Unlock()
	for l.drop(horizon.UnixNano()) {
	}
	l.sweepDamaged(horizon)
}

// retire ends the newest segment when its records could all be deleted, since
// only older segments are.
func (l *Log) retire(horizon int64) {
	if l.out == nil || !l.retirable(horizon) {
		return
	}
	if _, err := l.begin(); err != nil {
		l.o.Logger.Warn("journal: cannot create segment", "dir", l.dir, "error", err)
	}
}

// dropOldest deletes the oldest segment if it is processed, however young. The
// caller holds writing.
func (l *Log) dropOldest() bool {
	l.retire(math.MaxInt64)
	return l.drop(math.MaxInt64)
}

// dropForQuota is dropOldest on behalf of another log that shares the quota. It
// does not wait for a commit in progress here, which may be waiting for that log.
func (l *Log) dropForQuota() bool {
	if !l.acquire() {
		return false
	}
	defer l.wg.Done()
	if l.writing.TryLock() {
		defer l.writing.Unlock()
		l.retire(math.MaxInt64)
	}
	return l.drop(math.MaxInt64)
}

// drop deletes the oldest segment if it is processed and no record in it is
// younger than the horizon. The newest segment stays: its name keeps the next
// sequence.
func (l *Log) drop(horizon int64) bool {
	l.deleting.Lock()
	defer l.deleting.Unlock()
	l.state.Lock()
	s := l.segments[0]
	if len(l.segments) == 1 || s.newest > horizon || !l.processed(s) {
		l.state.Unlock()
		return false
	}
	size := s.size
	l.segments = slices.Clone(l.segments[1:])
	l.gaps = slices.DeleteFunc(l.gaps, func(g Gap) bool { return g.Segment == s.String() })
	l.state.Unlock()
	l.remove(s)
	l.o.Quota.add(-size)
	return true
}

func (l *Log) retirable(horizon int64) bool {
	l.state.RLock()
	defer l.state.RUnlock()
	s := l.segments[len(l.segments)-1]
	return !s.empty() && s.newest <= horizon && l.processed(s)
}

// processed says whether every consumer has committed the segment's last
// record. Without consumers nothing is processed; one whose checkpoint is in
// the directory counts though it was not opened this time. The caller holds
// state.
func (l *Log) processed(s *segment) bool {
	for _, c := range l.consumers {
		if c.Committed() < s.last {
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
