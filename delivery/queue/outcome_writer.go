package queue

import (
	"context"
	"log/slog"
	"sync"
	"time"

	"github.com/penstock/penstock/relay"
	"github.com/penstock/penstock/relay/outbox"
)

// Outcomes are saved in batches of at most maxBatch, collected for at most
// batchDelay after the first.
const (
	maxBatch   = 256
	batchDelay = 2 * time.Millisecond
	// saveTimeout bounds one attempt to save; minRetryDelay and maxRetryDelay
	// bound the backoff while the store is unavailable; refusedDelay is the wait
	// before an outcome that the store refused is saved again.
	saveTimeout   = 5 * time.Second
	minRetryDelay = 50 * time.Millisecond
	maxRetryDelay = time.Second
	refusedDelay  = 10 * time.Second
)

// outcomeWriter saves outcomes, retries until the store has them, and tracks
// those that are not saved yet.
type outcomeWriter struct {
	store   outbox.Store
	log     *slog.Logger
	onSaved func(saved []outbox.Outcome, turns []outbox.Ref)

	mu      sync.Mutex
	unsaved map[string]struct{} // ids; one outcome per delivery at a time
	pending []outbox.Outcome

	notify    chan struct{}
	batchFull chan struct{} // notified when a whole batch is pending
	ctx       context.Context
	cancel    context.CancelFunc
	drain     chan struct{} // closed to end run once nothing is pending
	done      chan struct{}
}

func newOutcomeWriter(store outbox.Store, log *slog.Logger, saved func(saved []outbox.Outcome, turns []outbox.Ref)) *outcomeWriter {
	w := &outcomeWriter{
		store: store, log: log, onSaved: saved, unsaved: make(map[string]struct{}),
		notify: make(chan struct{}, 1), batchFull: make(chan struct{}, 1),
		drain: make(chan struct{}), done: make(chan struct{}),
	}
	w.ctx, w.cancel = context.WithCancel(context.Background())
	return w
}

func (w *outcomeWriter) start() { go w.run() }

// add enqueues an outcome; isUnsaved returns true for it until it is saved.
func (w *outcomeWriter) add(o outbox.Outcome) {
	w.mu.Lock()
	w.unsaved[o.ID] = struct{}{}
	w.pending = append(w.pending, o)
	n := len(w.pending)
	w.mu.Unlock()
	notify(w.notify)
	if n >= maxBatch {
		notify(w.batchFull)
	}
}

func notify(c chan struct{}) {
	select {
	case c <- struct{}{}:
	default:
	}
}

// isUnsaved reports whether a delivery has an outcome that is not saved yet.
func (w *outcomeWriter) isUnsaved(id string) bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	_, ok := w.unsaved[id]
	return ok
}

func (w *outcomeWriter) unsavedCount() int {
	w.mu.Lock()
	defer w.mu.Unlock()
	return len(w.unsaved)
}

// stop saves the pending outcomes and returns how many could not be saved before
// ctx ended.
func (w *outcomeWriter) stop(ctx context.Context) int {
	close(w.drain)
	wait(ctx, w.done)
	w.cancel()
	<-w.done
	return w.unsavedCount()
}

func (w *outcomeWriter) run() {
	defer close(w.done)
	for {
		if batch := w.nextBatch(); len(batch) > 0 {
			w.save(batch)
			continue
		}
		select {
		case <-w.notify:
			w.collectBatch()
		case <-w.drain:
			if w.pendingCount() == 0 {
				return
			}
		case <-w.ctx.Done():
			return
		}
	}
}

// collectBatch waits up to batchDelay for the batch to grow.
func (w *outcomeWriter) collectBatch() {
	select {
	case <-w.batchFull:
	case <-time.After(batchDelay):
	case <-w.drain:
	case <-w.ctx.Done():
	}
}

func (w *outcomeWriter) pendingCount() int {
	w.mu.Lock()
	defer w.mu.Unlock()
	return len(w.pending)
}

func (w *outcomeWriter) nextBatch() []outbox.Outcome {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.ctx.Err() != nil {
		return nil
	}
	n := min(maxBatch, len(w.pending))
	batch := w.pending[:n:n]
	if w.pending = w.pending[n:]; len(w.pending) == 0 {
		w.pending = nil
	}
	return batch
}

// save retries until the batch is saved. It waits while the store is
// unavailable. If the store refuses the batch, its outcomes are saved one by
// one, so that one bad outcome does not block the others.
func (w *outcomeWriter) save(batch []outbox.Outcome) {
	for pause := minRetryDelay; ; pause = min(2*pause, maxRetryDelay) {
		turns, err := w.saveOnce(batch)
		switch {
		case err == nil:
			w.markSaved(batch, turns)
			return
		case relay.KindOf(err) != relay.KindUnavailable && len(batch) > 1:
			for i := range batch {
				w.save(batch[i : i+1])
			}
			return
		case relay.KindOf(err) != relay.KindUnavailable:
			w.retryLater(batch[0], err)
			return
		}
		w.log.Warn("outcomes not saved; trying again", "count", w.unsavedCount(), "error", err)
		select {
		case <-time.After(pause):
		case <-w.ctx.Done():
			return
		}
	}
}

func (w *outcomeWriter) saveOnce(batch []outbox.Outcome) ([]outbox.Ref, error) {
	ctx, cancel := context.WithTimeout(w.ctx, saveTimeout)
	defer cancel()
	return w.store.Finish(ctx, batch)
}

func (w *outcomeWriter) markSaved(batch []outbox.Outcome, turns []outbox.Ref) {
	w.mu.Lock()
	for i := range batch {
		delete(w.unsaved, batch[i].ID)
	}
	w.mu.Unlock()
	w.onSaved(batch, turns)
}

// retryLater saves an outcome that the store refused again after refusedDelay.
func (w *outcomeWriter) retryLater(o outbox.Outcome, err error) {
	w.log.Error("outcome refused by the store", "account", o.Account, "delivery_id", o.ID, "error", err)
	time.AfterFunc(refusedDelay, func() {
		if w.ctx.Err() == nil {
			w.add(o)
		}
	})
}
