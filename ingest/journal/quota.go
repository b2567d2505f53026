package journal

import (
	"math"
	"slices"
	"sync"
)

// Quota is a byte budget for the records of the logs that share it. Space that
// a segment has reserved on disk but not used (up to SegmentBytes per log) and
// copies of damaged ranges are not counted.
type Quota struct {
	max int64

	mu   sync.Mutex
	used int64
	logs []*Log
}

// NewQuota returns a budget of maxBytes.
func NewQuota(maxBytes int64) *Quota { return &Quota{max: maxBytes} }

// Used returns the bytes that the records of all logs take, and the budget.
func (q *Quota) Used() (used, max int64) {
	q.mu.Lock()
	defer q.mu.Unlock()
	return q.used, q.max
}

func (q *Quota) reserve(n int64) bool {
	q.mu.Lock()
	defer q.mu.Unlock()
	if q.used+n > q.max {
		return false
	}
	q.used += n
	return true
}

func (q *Quota) add(n int64) {
	q.mu.Lock()
	defer q.mu.Unlock()
	q.used += n
}

// addLog adds the bytes of an opened log, even beyond the budget.
func (q *Quota) addLog(l *Log) {
	bytes := l.Stats().Bytes
	q.mu.Lock()
	defer q.mu.Unlock()
	q.used += bytes
	q.logs = append(q.logs, l)
}

// removeLog subtracts the bytes of a closed log.
func (q *Quota) removeLog(l *Log) {
	bytes := l.Stats().Bytes
	q.mu.Lock()
	defer q.mu.Unlock()
	q.used -= bytes
	q.logs = slices.DeleteFunc(q.logs, func(other *Log) bool { return other == l })
}

func (q *Quota) openLogs() []*Log {
	q.mu.Lock()
	defer q.mu.Unlock()
	return slices.Clone(q.logs)
}

// dropReplayable deletes a segment that is kept for replay only, once these take more
// than half of the budget: the oldest of the log that has the most of them.
func (q *Quota) dropReplayable() bool {
	var sum, most int64
	var from *Log
	for _, l := range q.openLogs() {
		bytes := l.replayable()
		if sum += bytes; bytes > most {
			most, from = bytes, l
		}
	}
	if sum <= q.max/2 || !from.acquire() {
		return false
	}
	defer from.wg.Done()
	if !from.drop(math.MaxInt64, ForReplay) {
		return false
	}
	from.o.Logger.Error("journal: records needed for replay were deleted, since they take more than half of the quota",
		"dir", from.dir, "bytes", sum, "quota", q.max)
	return true
}

// reclaim deletes a processed segment of another log than the asking one: records that a
// log keeps only for replay must not make another refuse traffic.
func (q *Quota) reclaim(asking *Log) bool {
	return slices.ContainsFunc(q.openLogs(), func(l *Log) bool { return l != asking && l.dropForQuota() })
}
