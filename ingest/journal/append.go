package journal

import (
	"context"
	"fmt"
	"time"
)

// maxBatch is the maximum size of a batch in bytes.
const maxBatch = 4 << 20

// batch holds the records of one write and one fdatasync. The records are numbered when the
// batch's position in the log is known.
type batch struct {
	buf      []byte
	n        int
	firstSeq uint64 // set before done is closed
	err      error  // set before done is closed
	done     chan struct{}
}

func newBatch(buf []byte) *batch { return &batch{buf: buf[:0], done: make(chan struct{})} }

// Pending is a staged record whose batch may not be durable yet.
type Pending struct {
	batch *batch
	index int
}

// Append stores a copy of payload and returns its sequence once the record is durable. It
// returns ErrTooLarge, ErrFull, ErrClosed, ctx.Err() or a disk error.
//
// If ctx ends during the commit, the record may still become durable and be delivered, so a
// retry can append it twice. After any other error the record is not in the log.
func (l *Log) Append(ctx context.Context, payload []byte) (uint64, error) {
	p, err := l.Stage(ctx, payload)
	if err != nil {
		return 0, err
	}
	return p.Wait(ctx)
}

// Stage is the first half of Append: it queues payload after all records staged earlier, so
// that records are stored in the order of the calls. Stage blocks only while the pending
// batch is full.
func (l *Log) Stage(ctx context.Context, payload []byte) (Pending, error) {
	if len(payload) > MaxPayload {
		return Pending{}, fmt.Errorf("journal: append %d bytes: %w", len(payload), ErrTooLarge)
	}
	for {
		if err := ctx.Err(); err != nil {
			return Pending{}, fmt.Errorf("journal: append: %w", err)
		}
		b, i, err := l.tryStage(payload)
		if err != nil {
			return Pending{}, fmt.Errorf("journal: append: %w", err)
		}
		if i >= 0 {
			return Pending{b, i}, nil
		}
		select {
		case <-b.done:
		case <-ctx.Done():
		}
	}
}

// Wait is the second half of Append. It returns the sequence once the record is durable.
func (p Pending) Wait(ctx context.Context) (uint64, error) {
	select {
	case <-p.batch.done:
	case <-ctx.Done():
		return 0, fmt.Errorf("journal: append: %w", ctx.Err())
	}
	if p.batch.err != nil {
		return 0, fmt.Errorf("journal: append: %w", p.batch.err)
	}
	return p.batch.firstSeq + uint64(p.index), nil
}

// tryStage adds payload to the pending batch. It returns the batch and the index of
// payload in it, or -1 if the batch is full.
func (l *Log) tryStage(payload []byte) (*batch, int, error) {
	t := l.opts.Now()
	l.staging.Lock()
	defer l.staging.Unlock()
	if l.closed {
		return nil, 0, ErrClosed
	}
	b := l.pending
	if b.n > 0 && len(b.buf)+headerSize+len(payload) > maxBatch {
		l.target = 0
		signal(l.notify)
		return b, -1, nil
	}
	b.buf = appendRecord(b.buf, payload, t)
	b.n++
	if b.n == 1 || b.n == l.target {
		signal(l.notify)
	}
	return b, b.n - 1, nil
}

// signal sends to a channel of capacity 1 unless a signal is pending.
func signal(c chan struct{}) {
	select {
	case c <- struct{}{}:
	default:
	}
}

// takeBatch removes and returns the pending batch, or nil if it is empty. If the last batch had
// more records, takeBatch first waits up to the commit window for the same number. A single
// appender never waits.
func (l *Log) takeBatch() *batch {
	l.staging.Lock()
	defer l.staging.Unlock()
	if l.pending.n == 0 {
		return nil
	}
	mayGrow := !l.closed && l.pending.n < l.lastCount && time.Since(l.takenAt) < 100*l.opts.CommitWindow
	if l.opts.CommitWindow > 0 && mayGrow {
		l.target = l.lastCount
		select {
		case <-l.notify: // the signal sent for the first record of the batch
		default:
		}
		l.staging.Unlock()
		select {
		case <-l.notify:
		case <-time.After(l.opts.CommitWindow):
		}
		l.staging.Lock()
		l.target = 0
	}
	b := l.pending
	l.pending, l.spare = newBatch(l.spare), nil
	l.lastCount, l.takenAt = b.n, time.Now()
	return b
}
