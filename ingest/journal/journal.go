// Package journal is the durable log of incoming traffic: each request is appended to
// it, on local disk, before it is acknowledged. See "Journal first" in
// docs/architecture.md.
//
// A log is a directory of segments. A segment holds records, each
//
//	[length 4][crc32c 4][sequence 8][time 8][payload]   little-endian
//
// where length is the length of the payload, and the checksum, seeded with the segment's
// salt, covers everything but itself. Appends are committed in groups: one write and one
// fdatasync for all that wait. Each consumer reads durable records and has a checkpoint;
// processed records are kept for most of the retention period, which makes replay possible,
// and deleted before its end.
//
// It guarantees:
//   - a sequence returned by Append is on disk, and no sequence is assigned twice,
//     even after all segments were deleted or the tail was lost;
//   - a reader never gets a record that is not durable or not intact;
//   - a segment with a record that a consumer has not committed, or that is still to be
//     processed, is never deleted, and a log without consumers deletes nothing;
//   - unreadable bytes are cut only if no valid record follows them, after they were
//     copied; otherwise they leave a Gap, which is reported.
//
// It refuses a second opener of the directory, payloads over MaxPayload, and all appends
// while the quota or the disk is full (ErrFull). It is not a queue: it has no priorities
// and no deletion of single records, and delivers to a consumer at least once.
package journal

import (
	"cmp"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"slices"
	"sync"
	"sync/atomic"
	"time"
)

// The errors a caller reacts to; all of them come wrapped.
var (
	// ErrLocked means that another Log, here or in another process, has the directory.
	ErrLocked = errors.New("directory is in use")
	// ErrFull means that nothing can be accepted until records are processed
	// or space is freed: the quota is used up by records that are needed, or the
	// disk is full.
	ErrFull = errors.New("journal is full")
	// ErrTooLarge means that the payload is over MaxPayload.
	ErrTooLarge = errors.New("payload is too large")
	// ErrClosed means that the log was closed.
	ErrClosed = errors.New("journal is closed")
	// ErrNotFound means that the sequence was not given yet, was removed by
	// the retention, or lies in a Gap.
	ErrNotFound = errors.New("no such record")
)

// Need is the purpose for which processed records are still needed.
type Need int

const (
	// NotNeeded records are deleted when they are old, and earlier to make room.
	NotNeeded Need = iota
	// ForReplay records are deleted when they are old; to make room only if all such
	// segments take more than half of the quota.
	ForReplay
	// ToProcess records are not deleted.
	ToProcess
)

// Options tune a Log. The zero value works.
type Options struct {
	SegmentBytes int64            // size at which a new segment is begun, at most 256 MiB; 0 is 16 MiB, or an eighth of a smaller quota
	Retention    time.Duration    // processed records are deleted before they are older than this; 0 is 168 h
	MaxBytes     int64            // quota of the records; 0 is 2 GiB. Space that is only reserved and copies of damaged ranges are not counted
	CommitWindow time.Duration    // how long a commit waits for appenders seen to be concurrent; 0 is 0.7 ms, negative is none
	Now          func() time.Time // stamps records and ages segments; nil is time.Now
	Logger       *slog.Logger     // nil is slog.Default
	// Need says what processed records of a range are still needed for, or an error if that
	// is not known now; nil: nothing. Sweep calls it, not the code that makes room.
	Need func(firstSeq, lastSeq uint64) (Need, error)
	// KeepAll reports that no segment may be deleted for its age now; nil never does.
	KeepAll func() bool
	// Synced is called with the time that each sync of a commit took; nil is not called.
	Synced func(took time.Duration)

	disk disk // tests inject faults here
}

func (o Options) withDefaults() (Options, error) {
	const maxSize = 256 << 20 // recovery reads a whole segment into memory
	if o.SegmentBytes < 0 || o.SegmentBytes > maxSize {
		return o, fmt.Errorf("journal: segment bytes %d: want 1 to %d", o.SegmentBytes, maxSize)
	}
	if o.Retention < 0 {
		return o, fmt.Errorf("journal: retention %v: want a positive duration", o.Retention)
	}
	o.MaxBytes = cmp.Or(o.MaxBytes, 2<<30)
	o.SegmentBytes = cmp.Or(o.SegmentBytes, min(16<<20, o.MaxBytes/8))
	o.Retention, o.CommitWindow = cmp.Or(o.Retention, 168*time.Hour), cmp.Or(o.CommitWindow, 700*time.Microsecond)
	o.Logger = cmp.Or(o.Logger, slog.Default())
	if o.Now == nil {
		o.Now = time.Now
	}
	if o.disk == nil {
		o.disk = osDisk{}
	}
	return o, nil
}

// segmentAge is the age of its first record at which a segment is complete. Records are
// deleted a segment at a time, so it is the time by which one may be deleted earlier.
func (o Options) segmentAge() time.Duration { return o.Retention / 10 }

func (o Options) sweepInterval() time.Duration {
	return min(time.Minute, max(o.Retention/20, time.Millisecond))
}

// Log is one append-only log in one directory. It is safe for concurrent use. Its
// locks nest in the order writing, deleting, state; staging is taken alone.
type Log struct {
	dir    string
	o      Options
	lock   *os.File
	notify chan struct{} // signals the committer that a batch has begun or is complete
	quit   chan struct{} // closed by Close
	// rotated signals housekeeping that a segment was completed.
	rotated chan struct{}
	wg      sync.WaitGroup
	err     error // of closing the last segment; read after wg

	staging sync.Mutex // guards the fields that Append uses
	pending *batch
	spare   []byte    // the buffer of the last batch, for the next one
	peers   int       // appenders in the last batch: as many are expected again
	target  int       // the committer waits for so many; 0 when it does not
	takenAt time.Time // when the last batch was taken
	closed  bool

	writing sync.Mutex   // guards the fields that the committer and rotation use
	file    file         // the newest segment; nil after it was abandoned
	end     int64        // just behind its last good record
	nextSeq uint64       // the next sequence
	index   []indexEntry // of the batch being written

	deleting sync.Mutex // one deletion at a time

	state     sync.RWMutex  // guards the fields that readers use
	segments  []*segment    // oldest first, never empty; the last one is written to
	deleted   []segmentName // deleted between others, as recovery found them
	durable   uint64        // the last acknowledged sequence
	grown     chan struct{}
	consumers map[string]*Consumer
	gaps      []Gap
	lastErr   error // of the last batch

	judgedAt atomic.Int64 // when judge began last, Unix ns

	appends, fsyncs, failed, cut atomic.Int64
}

// Open opens the log in dir, which it creates, locks and recovers. Every
// record is read and verified, so that opening takes as long as reading all
// of it. A second opener gets ErrLocked with the holder's process id.
func Open(dir string, o Options) (*Log, error) {
	o, err := o.withDefaults()
	if err != nil {
		return nil, err
	}
	if err := makeDir(dir, o.disk); err != nil {
		return nil, fmt.Errorf("journal: create directory: %w", err)
	}
	lock, err := LockDir(dir)
	if err != nil {
		return nil, err
	}
	l := &Log{
		dir: dir, o: o, lock: lock,
		notify: make(chan struct{}, 1), quit: make(chan struct{}), rotated: make(chan struct{}, 1),
		pending: newBatch(nil), consumers: map[string]*Consumer{},
	}
	if err := l.recover(); err != nil {
		return nil, errors.Join(fmt.Errorf("journal: recover %s: %w", dir, err), l.closeFiles())
	}
	l.wg.Go(l.commitLoop)
	l.wg.Go(l.housekeeping)
	return l, nil
}

// Close refuses new appends, waits for those in flight, makes the checkpoints
// durable and releases the directory. Consumers that wait get ErrClosed.
func (l *Log) Close() error {
	l.staging.Lock()
	wasClosed := l.closed
	l.closed = true
	l.staging.Unlock()
	if wasClosed {
		return ErrClosed
	}
	close(l.quit)
	l.wg.Wait()
	return errors.Join(l.err, l.syncCheckpoints(), l.closeFiles())
}

func (l *Log) closeFiles() error {
	l.state.Lock()
	defer l.state.Unlock()
	var errs []error
	if l.file != nil {
		errs = append(errs, l.file.Close())
	}
	for _, c := range l.consumers {
		errs = append(errs, c.checkpoint.f.Close())
	}
	return errors.Join(append(errs, l.lock.Close())...)
}

// Stats is a snapshot of a log.
type Stats struct {
	First     uint64 // the oldest record's sequence; 0 when there is none
	Last      uint64 // the last durable sequence
	Bytes     int64  // of all segments, without space that is only reserved
	MaxBytes  int64  // the quota, as in Options
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
		Last: l.durable, MaxBytes: l.o.MaxBytes, Segments: len(l.segments), Gaps: len(l.gaps), Err: l.lastErr,
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
