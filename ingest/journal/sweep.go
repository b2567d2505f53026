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
	if err := l.sweepDropped(); err != nil {
		l.o.Logger.Warn("journal: names of deleted segments not removed", "dir", l.dir, "error", err)
	}
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

// dropYoung deletes a processed segment, however young, to make room. The caller
// holds writing.
func (l *Log) dropYoung() bool {
	l.retire(math.MaxInt64)
	return l.dropForRoom()
}

// dropForQuota is dropYoung on behalf of another log that shares the quota. It
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
	return l.dropForRoom()
}

// drop deletes the oldest segment if it is processed and no record in it is
// younger than the horizon. The newest segment stays: its name keeps the next
// sequence.
func (l *Log) drop(horizon int64) bool {
	l.deleting.Lock()
	defer l.deleting.Unlock()
	all := l.deletable(horizon)
	if len(all) == 0 || all[0].at > 0 || l.need(all[0]) == ToProcess {
		return false
	}
	l.delete(all[0])
	return true
}

// dropForRoom deletes the oldest processed segment of which nothing is needed. If
// there is none, it deletes the oldest that is needed for replay only, once such
// segments take more than half of the quota.
func (l *Log) dropForRoom() bool {
	l.deleting.Lock()
	defer l.deleting.Unlock()
	var kept []candidate
	var size int64
	for _, c := range l.deletable(math.MaxInt64) {
		switch l.need(c) {
		case NotNeeded:
			l.delete(c)
			return true
		case ForReplay:
			kept, size = append(kept, c), size+c.size
		}
	}
	if size <= l.o.Quota.max/2 {
		return false
	}
	l.o.Logger.Error("journal: records needed for replay are deleted, since they take more than half of the quota",
		"dir", l.dir, "first", kept[0].first, "last", kept[0].last, "bytes", size)
	l.delete(kept[0])
	return true
}

// candidate is a segment that may be deleted, as it is now.
type candidate struct {
	*segment
	at          int // its index
	first, last uint64
	size        int64
}

// deletable returns the segments, but the newest, that are processed and have no
// record younger than the horizon, oldest first.
func (l *Log) deletable(horizon int64) (all []candidate) {
	l.state.RLock()
	defer l.state.RUnlock()
	for i, s := range l.segments[:len(l.segments)-1] {
		if s.newest <= horizon && l.processed(s) {
			all = append(all, candidate{s, i, s.first, s.last, s.size})
		}
	}
	return all
}

// need asks what the records of a segment are needed for.
func (l *Log) need(c candidate) Need {
	if l.o.Need == nil || c.last < c.first {
		return NotNeeded
	}
	return l.o.Need(c.first, c.last)
}

// delete takes a segment out of the log and deletes its file. The caller holds
// deleting.
func (l *Log) delete(c candidate) {
	l.state.Lock()
	l.segments = slices.DeleteFunc(slices.Clone(l.segments), func(s *segment) bool { return s == c.segment })
	l.gaps = slices.DeleteFunc(l.gaps, func(g Gap) bool { return g.Segment == c.String() })
	l.state.Unlock()
	l.remove(c.segment, c.at == 0)
	l.o.Quota.add(-c.size)
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
