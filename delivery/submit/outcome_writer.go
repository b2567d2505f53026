package submit

import (
	"context"
	"sync"
	"time"

	"github.com/penstock/penstock/decoders/smpp"
	"github.com/penstock/penstock/relay"
	"github.com/penstock/penstock/relay/message"
)

const (
	// maxBatch is the largest number of outcomes saved at a time; batchDelay is
	// how long the writer waits for more after the first.
	maxBatch   = 512
	batchDelay = 2 * time.Millisecond
	// minRetryDelay and maxRetryDelay bound the backoff while the store is
	// unavailable.
	minRetryDelay = 50 * time.Millisecond
	maxRetryDelay = time.Second
)

// pendingOutcome is an outcome that is not saved yet. A correction does not keep
// its item in memory.
type pendingOutcome struct {
	item       *item
	outcome    message.Outcome
	correction bool
}

// outcomeWriter saves outcomes in batches and retries until the store has them.
type outcomeWriter struct {
	worker  *Worker
	mu      sync.Mutex
	pending []pendingOutcome
	notify  chan struct{}
	drain   chan struct{}
	done    chan struct{}
	ctx     context.Context
	cancel  context.CancelFunc
}

func newOutcomeWriter(w *Worker) *outcomeWriter {
	o := &outcomeWriter{worker: w, notify: make(chan struct{}, 1), drain: make(chan struct{}), done: make(chan struct{})}
	o.ctx, o.cancel = context.WithCancel(context.Background())
	return o
}

// add enqueues the outcome of a part.
func (w *outcomeWriter) add(item *item, o message.Outcome) {
	w.enqueue(pendingOutcome{item: item, outcome: o})
}

// addCorrection enqueues an outcome that replaces an unknown one.
func (w *outcomeWriter) addCorrection(item *item, o message.Outcome) {
	w.enqueue(pendingOutcome{item: item, outcome: o, correction: true})
}

func (w *outcomeWriter) enqueue(e pendingOutcome) {
	w.mu.Lock()
	w.pending = append(w.pending, e)
	w.mu.Unlock()
	notify(w.notify)
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
			if w.isEmpty() {
				return
			}
		case <-w.ctx.Done():
			return
		}
	}
}

// collectBatch waits up to batchDelay for the batch to grow.
func (w *outcomeWriter) collectBatch() {
	timer := time.NewTimer(batchDelay)
	defer timer.Stop()
	select {
	case <-timer.C:
	case <-w.drain:
	case <-w.ctx.Done():
	}
}

func (w *outcomeWriter) isEmpty() bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	return len(w.pending) == 0
}

func (w *outcomeWriter) nextBatch() []pendingOutcome {
	w.mu.Lock()
	defer w.mu.Unlock()
	if w.ctx.Err() != nil {
		return nil
	}
	n := min(maxBatch, len(w.pending))
	batch := w.pending[:n:n]
	w.pending = w.pending[n:]
	return batch
}

// save retries until the batch is saved. It waits while the store is
// unavailable. If the store refuses the batch, its outcomes are saved one by
// one, so that one bad outcome does not block the others.
func (w *outcomeWriter) save(batch []pendingOutcome) {
	for pause := minRetryDelay; ; pause = min(2*pause, maxRetryDelay) {
		err := w.saveOnce(batch)
		switch {
		case err == nil:
			w.partsSaved(batch)
			return
		case relay.KindOf(err) != relay.KindUnavailable && len(batch) > 1:
			for i := range batch {
				w.save(batch[i : i+1])
			}
			return
		case relay.KindOf(err) != relay.KindUnavailable:
			o := &batch[0].outcome
			w.worker.log.Error("an outcome is refused by the store", "account", o.Account, "msg_id", o.ID, "outcome", o.State, "error", err)
			w.partsSaved(batch)
			return
		}
		w.worker.log.Warn("outcomes of messages wait for the store", "count", len(batch), "error", err)
		select {
		case <-time.After(pause):
		case <-w.ctx.Done():
			return
		}
	}
}

// saveOnce binds the carriers' ids before it records the outcomes, so that a
// receipt always finds its part.
func (w *outcomeWriter) saveOnce(batch []pendingOutcome) error {
	ctx, cancel := context.WithTimeout(w.ctx, storeTimeout)
	defer cancel()
	outcomes := make([]message.Outcome, len(batch))
	var bindings []message.Binding
	for i := range batch {
		outcomes[i] = batch[i].outcome
		bindings = append(bindings, w.worker.bindingsOf(batch[i].item, &batch[i].outcome)...)
	}
	if len(bindings) > 0 {
		if err := w.worker.deps.Network.Bind(ctx, bindings); err != nil {
			return err
		}
	}
	toReport, err := w.worker.deps.Work.Settle(ctx, outcomes)
	if err != nil {
		return err
	}
	if err := w.worker.deps.Network.SendReports(ctx, toReport); err != nil {
		w.worker.log.Warn("delivery reports failed; they will be sent again", "count", len(toReport), "error", err)
	}
	return nil
}

// bindingsOf returns the binding of the id that receipts name the part by: the
// carrier's id, or our reference if the carrier's answer was lost.
func (w *Worker) bindingsOf(item *item, o *message.Outcome) []message.Binding {
	q := w.queueNamed(o.Carrier)
	if q == nil || !q.route.Reports {
		return nil
	}
	var id string
	switch {
	case o.State == message.Unknown:
		id = smpp.UnansweredID(smpp.ReferenceOf(o.PartRef.String()), item.msg.Destination)
	case o.Ref != "":
		id = smpp.CanonicalID(o.Ref)
	default:
		return nil
	}
	return []message.Binding{{Carrier: o.Carrier, IDs: []string{id}, Part: o.PartRef, Number: item.msg.Destination}}
}

func (w *Worker) queueNamed(carrier string) *carrierQueue {
	for _, q := range w.queues {
		if q.route.Name == carrier {
			return q
		}
	}
	return nil
}

func (w *outcomeWriter) partsSaved(batch []pendingOutcome) {
	for i := range batch {
		if !batch[i].correction {
			w.worker.partsDone(batch[i].item, 1)
		}
	}
}

// stop saves the pending outcomes until ctx ends.
func (w *outcomeWriter) stop(ctx context.Context) error {
	close(w.drain)
	select {
	case <-w.done:
	case <-ctx.Done():
	}
	w.cancel()
	<-w.done
	return ctx.Err()
}
