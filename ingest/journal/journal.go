// Package journal provides a durable log of incoming traffic on local disk. Each request
// is appended to the log before the request is acknowledged. See "Journal first" in
// docs/architecture.md.
//
// A log is a directory of segments. A segment holds records, each
//
//	[length 4][crc32c 4][sequence 8][time 8][payload]   little-endian
//
// where length is the length of the payload. The checksum is seeded with the segment's salt
// and covers the rest of the record. Appends are committed in groups: one write and one
// fdatasync for all staged records. Each consumer reads durable records and has a
// checkpoint. Processed records are kept for most of the retention period, unless the quota or the
// disk is full, so that they can be replayed, and deleted before its end.
//
// The log guarantees:
//   - a record is on disk when Append returns its sequence, and no sequence is assigned
//     twice, even after all segments were deleted or the tail was lost;
//   - a reader never receives a record that is not durable or not intact;
//   - a segment with a record that a consumer has not committed, or that must be processed
//     again, is never deleted, and a log without consumers deletes nothing;
//   - unreadable bytes are copied and then cut if no valid record follows them; otherwise
//     they are reported as a Gap.
//
// The log refuses a second opener of the directory, payloads over MaxPayload, and all appends
// while the quota or the disk is full (ErrFull). The log has no priorities, does not delete
// single records, and delivers each record to a consumer at least once.
package journal

import (
	"cmp"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"sync"
	"sync/atomic"
	"time"
)

// Errors that callers handle. The log returns them wrapped.
var (
	// ErrLocked means that another Log, in this or another process, uses the directory.
	ErrLocked = errors.New("directory is in use")
	// ErrFull means that the quota is used up by records that are needed, or that the
	// disk is full. Appends fail until records are processed or space is freed.
	ErrFull = errors.New("journal is full")
	// ErrTooLarge means that the payload is over MaxPayload.
	ErrTooLarge = errors.New("payload is too large")
	// ErrClosed means that the log was closed.
	ErrClosed = errors.New("journal is closed")
	// ErrNotFound means that no record has the sequence yet, or that the record lies in a Gap
	// or was deleted.
	ErrNotFound = errors.New("no such record")
)

// Need is a reason to keep processed records.
type Need int

const (
	// NotNeeded records are deleted when they are old, and earlier to make room.
	NotNeeded Need = iota
	// ForReplay records are deleted when they are old. They are deleted to make room only if
	// their segments take more than half of the quota.
	ForReplay
	// ToProcess records must be processed again and are not deleted.
	ToProcess
)

// Options configures a Log. The zero value works.
type Options struct {
	Retention    time.Duration    // processed records are deleted before they are older than this; 0 is 168 h
	MaxBytes     int64            // quota of the segments, without reserved space and copies of damaged ranges; 0 is 2 GiB
	CommitWindow time.Duration    // maximum wait of a commit for concurrent appenders; 0 is 0.7 ms, a negative value disables the wait
	Now          func() time.Time // the time of records and the age of segments; nil is time.Now
	Logger       *slog.Logger     // nil is slog.Default
	// Need returns the reason to keep the processed records of a range. After an error the log
	// keeps the previous answer. A nil Need means NotNeeded. Commits do not call Need, because
	// a commit that makes room must not wait for a database.
	Need func(firstSeq, lastSeq uint64) (Need, error)
	// KeepAll reports whether segments must be kept regardless of age; nil means false.
	KeepAll func() bool
	// Synced is called with the duration of each sync of a commit, unless it is nil.
	Synced func(duration time.Duration)

	// Only tests set the fields below.
	segmentBytes int64 // size at which a new segment begins; 0 is 16 MiB, or an eighth of a smaller quota
	disk         disk
}

func (o Options) withDefaults() Options {
	o.MaxBytes = cmp.Or(o.MaxBytes, 2<<30)
	o.segmentBytes = cmp.Or(o.segmentBytes, min(16<<20, o.MaxBytes/8)) // recovery reads whole segments into memory
	o.Retention, o.CommitWindow = cmp.Or(o.Retention, 168*time.Hour), cmp.Or(o.CommitWindow, 700*time.Microsecond)
	o.Logger = cmp.Or(o.Logger, slog.Default())
	if o.Now == nil {
		o.Now = time.Now
	}
	if o.disk == nil {
		o.disk = osDisk{}
	}
	return o
}

// segmentAge is the age of the first record at which a segment is complete. Because whole
// segments are deleted, a record may be deleted this duration before its retention ends.
func (o Options) segmentAge() time.Duration { return o.Retention / 10 }

func (o Options) sweepInterval() time.Duration {
	return min(time.Minute, max(o.Retention/20, time.Millisecond))
}

// Log is an append-only log in one directory. It is safe for concurrent use. Locks are
// acquired in the order writing, deleting, state; staging is acquired alone.
type Log struct {
	dir        string
	opts       Options
	lock       *os.File
	notify     chan struct{} // signals the committer that a batch has begun or is complete
	sweepSoon  chan struct{} // signals housekeeping that segments may be deletable
	quit       chan struct{} // closed by Close
	background sync.WaitGroup
	err        error // the error of truncating the last segment; read after background has ended

	staging   sync.Mutex // guards the fields that Append uses
	pending   *batch
	spare     []byte    // the buffer of a committed batch, for reuse
	lastCount int       // records in the last batch; the committer expects as many again
	target    int       // records for which the committer waits; 0 if it does not wait
	takenAt   time.Time // when the last batch was taken
	closed    bool

	writing sync.Mutex // guards the fields that the committer and rotation use
	file    file       // the newest segment; nil after it was abandoned
	end     int64      // the end of the last valid record in file
	nextSeq uint64     // the next sequence to assign

	deleting sync.Mutex // one deletion at a time

	state      sync.RWMutex  // guards the fields that readers use
	segments   []*segment    // oldest first, never empty; batches are written to the last one
	deleted    []segmentName // segments that were deleted between others, as found by recovery
	durableSeq uint64        // the last acknowledged sequence
	growth     chan struct{} // closed when another record is durable; nil while no reader waits
	consumers  map[string]*Consumer
	lastErr    error // the error of the last commit; nil if it succeeded

	needsRefreshedAt atomic.Int64 // the last start of refreshNeeds, Unix ns

	appends, fsyncs, failed, cut atomic.Int64
}

// Open creates, locks and recovers the log in dir. It reads and verifies every record. If dir
// is in use, Open returns ErrLocked with the process id of the user.
func Open(dir string, o Options) (*Log, error) {
	o = o.withDefaults()
	if err := makeDir(dir, o.disk); err != nil {
		return nil, fmt.Errorf("journal: create directory: %w", err)
	}
	lock, err := LockDir(dir)
	if err != nil {
		return nil, err
	}
	l := &Log{
		dir: dir, opts: o, lock: lock,
		notify: make(chan struct{}, 1), quit: make(chan struct{}), sweepSoon: make(chan struct{}, 1),
		pending: newBatch(nil), consumers: map[string]*Consumer{},
	}
	if err := l.recover(); err != nil {
		return nil, errors.Join(fmt.Errorf("journal: recover %s: %w", dir, err), l.closeFiles())
	}
	l.background.Go(l.commitLoop)
	l.background.Go(l.sweepLoop)
	return l, nil
}

// Close refuses new appends, waits for pending ones, makes the checkpoints durable and
// releases the directory. Blocked calls of Next return ErrClosed.
func (l *Log) Close() error {
	l.staging.Lock()
	wasClosed := l.closed
	l.closed = true
	l.staging.Unlock()
	if wasClosed {
		return ErrClosed
	}
	close(l.quit)
	l.background.Wait()
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
	First    uint64 // the oldest record's sequence; 0 if the log has no records
	Last     uint64 // the last durable sequence
	Bytes    int64  // the size of all segments, without reserved space
	Needed   int64  // the size of the segments with records that are unprocessed or have a Need
	MaxBytes int64  // the quota, as in Options
	Gaps     int    // damaged ranges of the existing segments
	Cut      int64  // bytes cut from the tail by Open
	Appends  int64  // records acknowledged since Open
	Failed   int64  // records whose commit failed since Open
	Fsyncs   int64  // syncs of commits since Open
	Err      error  // the error of the last commit; nil if it succeeded
}

// Stats returns a snapshot of the log.
func (l *Log) Stats() Stats {
	l.state.RLock()
	defer l.state.RUnlock()
	st := Stats{
		Last: l.durableSeq, MaxBytes: l.opts.MaxBytes, Err: l.lastErr,
		Cut: l.cut.Load(), Appends: l.appends.Load(), Failed: l.failed.Load(), Fsyncs: l.fsyncs.Load(),
	}
	for _, s := range l.segments {
		st.Bytes += s.size
		if !l.isProcessed(s) || s.need != NotNeeded {
			st.Needed += s.size
		}
		st.Gaps += len(s.gaps)
		if st.First == 0 && !s.isEmpty() {
			st.First = s.index[0].seq
		}
	}
	return st
}
