package journal

import (
	"errors"
	"fmt"
	"time"
)

// commitLoop makes batches durable, one at a time, until the log is closed and
// nothing is pending.
func (l *Log) commitLoop() {
	for closing := false; ; {
		if b := l.takeBatch(); b != nil {
			l.commit(b)
			continue
		}
		if closing {
			break
		}
		select {
		case <-l.notify:
		case <-l.quit: // no more records are staged; commit the pending batch
			closing = true
		}
	}
	// Truncate the newest segment to its content. Its file stays open for Close.
	l.writing.Lock()
	defer l.writing.Unlock()
	if l.file != nil {
		l.err = l.file.Truncate(l.end)
	}
}

func (l *Log) commit(b *batch) {
	l.writing.Lock()
	b.err = l.write(b)
	l.writing.Unlock()
	if b.err != nil {
		l.failed.Add(int64(b.n))
	} else {
		l.appends.Add(int64(b.n))
	}
	// Release the appenders and keep the buffer for the batch after the next one.
	close(b.done)
	l.staging.Lock()
	l.spare = b.buf
	l.staging.Unlock()
}

// write stores a batch and syncs it. Readers see all records of the batch or none.
func (l *Log) write(b *batch) error {
	// Delete processed segments until the quota has room.
	var err error
	for err == nil && l.Stats().Bytes+int64(len(b.buf)) > l.opts.MaxBytes {
		if !l.makeRoom() {
			err = fmt.Errorf("%w: quota of %d bytes is used up by unprocessed and quarantined records", ErrFull, l.opts.MaxBytes)
		}
	}
	for firstSeq := l.nextSeq; err == nil; {
		if err = l.tryWrite(b); err == nil {
			break
		}
		if isDiskFull(err) && l.nextSeq == firstSeq && l.makeRoom() {
			err = nil // retry: the batch's sequences are still unused
		}
	}
	if isDiskFull(err) {
		err = fmt.Errorf("%w: %w", ErrFull, err)
	}
	// Log the first refused append, and the first append that is accepted again.
	l.state.Lock()
	oldErr := l.lastErr
	l.lastErr = err
	l.state.Unlock()
	switch {
	case err != nil && oldErr == nil:
		l.opts.Logger.Error("journal: append refused", "dir", l.dir, "error", err)
	case err == nil && oldErr != nil:
		l.opts.Logger.Info("journal: appends accepted again", "dir", l.dir)
	}
	return err
}

// tryWrite writes a batch after the last valid record. It undoes a failed write.
func (l *Log) tryWrite(b *batch) error {
	s, err := l.segmentFor(int64(len(b.buf)))
	if err != nil {
		return err
	}
	index := numberRecords(b.buf, l.nextSeq, s.salt, l.end)
	if _, err := l.file.WriteAt(b.buf, l.end); err != nil {
		undoErr := l.file.Truncate(l.end)
		if undoErr != nil {
			l.abandonSegment(b)
		}
		return fmt.Errorf("write segment: %w", errors.Join(err, undoErr))
	}
	l.fsyncs.Add(1)
	start := time.Now()
	err = l.file.Datasync()
	if l.opts.Synced != nil {
		l.opts.Synced(time.Since(start))
	}
	if err != nil {
		l.abandonSegment(b)
		return fmt.Errorf("sync segment: %w", err)
	}
	// Make the durable batch visible to readers.
	b.firstSeq = l.nextSeq
	l.nextSeq += uint64(b.n)
	l.end += int64(len(b.buf))
	now := l.opts.Now().UnixNano()
	l.state.Lock()
	defer l.state.Unlock()
	if s.isEmpty() {
		s.oldest = now
	}
	for _, entry := range index {
		s.index = addToIndex(s.index, entry.seq, entry.off)
	}
	s.size, s.lastSeq, l.durableSeq = l.end, l.nextSeq-1, l.nextSeq-1
	s.newest = max(s.newest, now)
	if l.growth != nil {
		close(l.growth)
		l.growth = nil
	}
	return nil
}

// abandonSegment closes a segment after a failure that leaves its content on disk
// unknown: a failed fdatasync may have dropped the pages and must not be repeated.
// The batch's sequences are not assigned again.
func (l *Log) abandonSegment(b *batch) {
	_ = l.file.Close()
	l.file = nil
	l.nextSeq += uint64(b.n)
}
