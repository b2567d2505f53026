package lease

import (
	"context"
	"log/slog"
	"sync"
	"time"

	"github.com/penstock/penstock/relay"
)

const (
	// batchDelay is the time for which outcomes are collected after the first.
	batchDelay = 2 * time.Millisecond
	// storeTimeout bounds one call of the store; minRetryDelay and maxRetryDelay
	// bound the backoff while the store is unavailable.
	storeTimeout  = 5 * time.Second
	minRetryDelay = 50 * time.Millisecond
	maxRetryDelay = time.Second
)

// WriterOptions configures a Writer of outcomes of type O.
type WriterOptions[O, R any] struct {
	// Save saves a batch; its result is passed to OnSaved. An error of relay.KindUnavailable is
	// retried. Any other error means that the store refuses the batch.
	Save func(ctx context.Context, batch []O) (R, error)
	// OnSaved is called with outcomes that are saved or dropped.
	OnSaved func(batch []O, result R)
	// OnRefused is called with an outcome that the store refuses even if it is saved alone. It
	// returns the delay until the outcome is saved again; 0 drops the outcome.
	OnRefused func(o *O, err error) time.Duration
	Batch     int // the largest number of outcomes saved at a time
	Log       *slog.Logger
}

// Writer saves outcomes in batches and retries until the store has them.
type Writer[O, R any] struct {
	opts WriterOptions[O, R]

	mu            sync.Mutex
	pending       []O
	lastBatchSize int // the expected size of the next batch
	unsaved       int // outcomes that are pending, being saved, or refused and saved again later

	added     chan struct{}
	batchFull chan struct{} // notified when a whole batch is pending
	ctx       context.Context
	cancel    context.CancelFunc
	drain     chan struct{} // closed to end run once nothing is pending
	done      chan struct{}
}

// NewWriter returns a Writer, which saves nothing before Start.
func NewWriter[O, R any](o WriterOptions[O, R]) *Writer[O, R] {
	w := &Writer[O, R]{
		opts: o, added: make(chan struct{}, 1), batchFull: make(chan struct{}, 1),
		drain: make(chan struct{}), done: make(chan struct{}),
	}
	w.ctx, w.cancel = context.WithCancel(context.Background())
	return w
}

// Start begins to save outcomes.
func (w *Writer[O, R]) Start() { go w.run() }

// Add enqueues an outcome.
func (w *Writer[O, R]) Add(o O) { w.enqueue(o, 1) }

func (w *Writer[O, R]) enqueue(o O, added int) {
	w.mu.Lock()
	w.unsaved += added
	if w.pending == nil {
		w.pending = make([]O, 0, w.lastBatchSize)
	}
	w.pending = append(w.pending, o)
	n := len(w.pending)
	w.mu.Unlock()
	relay.Notify(w.added)
	if n >= w.opts.Batch {
		relay.Notify(w.batchFull)
	}
}

// Unsaved returns the number of outcomes that are not saved yet.
func (w *Writer[O, R]) Unsaved() int {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.unsaved
}

// Stop saves the pending outcomes and returns the number of outcomes that were not saved before
// ctx ended.
func (w *Writer[O, R]) Stop(ctx context.Context) int {
	close(w.drain)
	relay.Wait(ctx, w.done)
	w.cancel()
	<-w.done
	return w.Unsaved()
}

func (w *Writer[O, R]) run() {
	defer close(w.done)
	for {
		if batch := w.nextBatch(); len(batch) > 0 {
			w.save(batch)
			continue
		}
		select {
		case <-w.added:
			select { // the batch may grow
			case <-w.batchFull:
			case <-time.After(batchDelay):
			case <-w.drain:
			case <-w.ctx.Done():
			}
		case <-w.drain:
			if w.pendingCount() == 0 {
				return
			}
		case <-w.ctx.Done():
			return
		}
	}
}

func (w *Writer[O, R]) pendingCount() int {
	w.mu.Lock()
	defer w.mu.Unlock()
	return len(w.pending)
}

func (w *Writer[O, R]) nextBatch() []O {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.ctx.Err() != nil {
		return nil
	}
	n := min(w.opts.Batch, len(w.pending))
	batch := w.pending[:n:n]
	if n > 0 {
		w.lastBatchSize = n
	}
	if w.pending = w.pending[n:]; len(w.pending) == 0 {
		w.pending = nil
	}
	return batch
}

// save retries until the batch is saved. It waits while the store is unavailable. If the store
// refuses the batch, save saves its outcomes one by one, so that a bad outcome does not block
// the others. An outcome that is refused alone is saved later, or dropped.
func (w *Writer[O, R]) save(batch []O) {
	for pause := minRetryDelay; ; pause = min(2*pause, maxRetryDelay) {
		ctx, cancel := context.WithTimeout(w.ctx, storeTimeout)
		result, err := w.opts.Save(ctx, batch)
		cancel()
		switch {
		case err == nil:
			w.markSaved(batch, result)
			return
		case relay.KindOf(err) != relay.KindUnavailable && len(batch) > 1:
			for i := range batch {
				w.save(batch[i : i+1])
			}
			return
		case relay.KindOf(err) != relay.KindUnavailable:
			wait := w.opts.OnRefused(&batch[0], err)
			if wait == 0 {
				w.markSaved(batch, result)
				return
			}
			time.AfterFunc(wait, func() {
				if w.ctx.Err() == nil {
					w.enqueue(batch[0], 0)
				}
			})
			return
		}
		w.opts.Log.Warn("outcomes not saved; trying again", "count", w.Unsaved(), "error", err)
		if !relay.Sleep(w.ctx, pause) {
			return
		}
	}
}

func (w *Writer[O, R]) markSaved(batch []O, result R) {
	w.mu.Lock()
	w.unsaved -= len(batch)
	w.mu.Unlock()
	w.opts.OnSaved(batch, result)
}
