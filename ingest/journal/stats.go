package journal

import (
	"cmp"
	"slices"
)

// Stats is a snapshot of a log.
type Stats struct {
	First     uint64 // the oldest record's sequence; 0 when there is none
	Last      uint64 // the last durable sequence
	Bytes     int64  // of all segments, without space that is only reserved
	Segments  int
	Gaps      int   // damaged ranges found since Open
	Cut       int64 // bytes cut from the tail by Open
	Consumers []ConsumerStats
	Appends   int64 // records acknowledged since Open
	Failed    int64 // records refused since Open
	Fsyncs    int64 // commits since Open
	Err       error // why the last commit was refused; nil when it was not
}

// ConsumerStats describes one consumer.
type ConsumerStats struct {
	Name      string
	Committed uint64 // its checkpoint
	Lag       uint64 // sequences behind Last; includes numbers given up
	Open      bool   // false when only its checkpoint was found
}

// Stats returns the log's state, with the consumers ordered by name.
func (l *Log) Stats() Stats {
	l.state.RLock()
	defer l.state.RUnlock()
	st := Stats{
		Last: l.durable, Segments: len(l.segments), Gaps: len(l.gaps), Err: l.lastErr,
		Cut: l.cut.Load(), Appends: l.appends.Load(), Failed: l.failed.Load(), Fsyncs: l.fsyncs.Load(),
	}
	for _, s := range l.segments {
		st.Bytes += s.size
		if st.First == 0 && !s.empty() {
			st.First = s.index[0].seq
		}
	}
	for _, c := range l.consumers {
		done := c.Committed()
		st.Consumers = append(st.Consumers, ConsumerStats{c.name, done, l.durable - min(done, l.durable), c.open})
	}
	slices.SortFunc(st.Consumers, func(a, b ConsumerStats) int { return cmp.Compare(a.Name, b.Name) })
	return st
}
