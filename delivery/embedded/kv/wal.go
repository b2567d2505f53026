package kv

import (
	"errors"
	"fmt"
	"os"
	"sync"
	"time"
)

// preallocate is how much of the log is reserved at a time: a sync that does not
// change the file's size costs about half.
const preallocate = 8 << 20

// retryAfter is how long a log that could not be written is left alone.
const retryAfter = time.Second

// errLogLost means that a sync failed: what the kernel still holds of the file is
// unknown, so nothing may be written behind it.
var errLogLost = errors.New("the log could not be synced; restart to recover what is on disk")

// wal writes records to the log. Whoever waits for a record first becomes the
// one that commits everything appended so far (group commit); the others wait
// for it.
type wal struct {
	mu     sync.Mutex
	turn   *sync.Cond
	window time.Duration

	f        *os.File
	size     int64 // bytes of good frames and the header
	reserved int64
	frame    uint64 // sequence of the last frame
	scratch  []byte

	buf        []byte // records waiting for a frame
	appended   uint64 // records appended
	durable    uint64 // records on disk
	committing bool
	err        error
	tried      time.Time
	base       int64 // bytes of the older logs that still count
}

func newWAL(window time.Duration) *wal {
	w := &wal{window: window}
	w.turn = sync.NewCond(&w.mu)
	return w
}

// attach makes f the file that frames are written to, behind size bytes.
func (w *wal) attach(f *os.File, size int64, frame uint64) {
	w.f, w.size, w.reserved, w.frame = f, size, size, frame
}

// append queues a record; last is its number.
func (w *wal) append(micros int64, writes []byte) {
	w.mu.Lock()
	w.buf = appendRecord(w.buf, micros, writes)
	w.appended++
	w.mu.Unlock()
}

// last is the number of the record appended last.
func (w *wal) last() uint64 {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.appended
}

func (w *wal) bytes() int64 {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.base + w.size
}

// wait returns when record n is on disk, or with the reason why it is not.
func (w *wal) wait(n uint64) error {
	w.mu.Lock()
	defer w.mu.Unlock()
	for w.durable < n {
		if w.err != nil {
			return w.err
		}
		if w.committing {
			w.turn.Wait()
			continue
		}
		w.commit()
	}
	return nil
}

// ready says whether writes can be taken. A log that failed for want of space is
// tried again, at most once in a second.
func (w *wal) ready() error {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.err == nil || errors.Is(w.err, errLogLost) || w.committing || time.Since(w.tried) < retryAfter {
		return w.err
	}
	w.commit()
	return w.err
}

// commit writes and syncs everything appended so far. It is called with the
// lock held and gives it up while the disk works.
func (w *wal) commit() {
	w.committing = true
	if w.window > 0 {
		w.mu.Unlock()
		time.Sleep(w.window)
		w.mu.Lock()
	}
	payload, upTo := w.buf, w.appended
	w.buf = nil
	w.mu.Unlock()
	n, err := w.store(payload)
	w.mu.Lock()
	w.finish(payload, upTo, n, err)
	w.committing = false
	w.turn.Broadcast()
}

func (w *wal) finish(payload []byte, upTo uint64, n int, err error) {
	w.err, w.tried = err, time.Now()
	if err != nil {
		w.buf = append(payload, w.buf...)
		return
	}
	w.durable = upTo
	w.size += int64(n)
	if w.buf == nil && cap(payload) <= preallocate {
		w.buf = payload[:0]
	}
}

// store writes one frame behind the last good one and syncs it.
func (w *wal) store(payload []byte) (int, error) {
	if len(payload) == 0 {
		return 0, nil
	}
	w.scratch = appendFrame(w.scratch[:0], w.frame+1, payload)
	n := len(w.scratch)
	w.reserve(int64(n))
	if _, err := w.f.WriteAt(w.scratch, w.size); err != nil {
		w.reserved = w.size
		return 0, errors.Join(fmt.Errorf("kv: write log: %w", err), w.f.Truncate(w.size))
	}
	if err := datasync(w.f); err != nil {
		return 0, fmt.Errorf("kv: sync log: %w: %w", errLogLost, err)
	}
	w.frame++
	if cap(w.scratch) > preallocate {
		w.scratch = nil
	}
	return n, nil
}

// reserve makes room for n bytes. A file system that cannot reserve only makes
// the syncs slower.
func (w *wal) reserve(n int64) {
	if w.size+n <= w.reserved {
		return
	}
	want := n + preallocate
	if allocate(w.f, w.size, want) == nil {
		w.reserved = w.size + want
	}
}

// flush makes everything appended so far durable.
func (w *wal) flush() error { return w.wait(w.last()) }

// rotate goes on in a new file. Nothing may be appended meanwhile, and
// everything must be durable, so it does not matter how closing the old one ends.
func (w *wal) rotate(f *os.File) {
	w.mu.Lock()
	defer w.mu.Unlock()
	_ = w.f.Truncate(w.size)
	_ = w.f.Close()
	w.base += w.size
	w.attach(f, headerSize, w.frame)
}

// forget says that so many bytes of older logs are no longer needed.
func (w *wal) forget() {
	w.mu.Lock()
	w.base = 0
	w.mu.Unlock()
}

// close gives back what was reserved and closes the file.
func (w *wal) close() error {
	err := w.flush()
	w.mu.Lock()
	defer w.mu.Unlock()
	if err == nil {
		err = errors.Join(w.f.Truncate(w.size), w.f.Sync())
	}
	return errors.Join(err, w.f.Close())
}
