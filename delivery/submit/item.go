package submit

import (
	"context"
	"slices"
	"sync/atomic"
	"time"

	"github.com/penstock/penstock/delivery/carrier"
	"github.com/penstock/penstock/delivery/lease"
	"github.com/penstock/penstock/relay"
	"github.com/penstock/penstock/relay/message"
)

// item is a message held by the worker.
type item struct {
	lease.Hold[message.Ref]
	msg      message.Message
	queued   []int // parts to submit, in order; protected by the queue's lock
	resubmit bool  // some were being sent when a process crashed
	// maybeMarked means that the store may have marked parts as being sent that
	// were not submitted, because its answer was lost. Only the queue's goroutine
	// uses it.
	maybeMarked bool
	// unfinished counts the parts that are queued, in flight, or have an outcome
	// that is not saved.
	unfinished atomic.Int32
}

// ref returns the reference of a part.
func (item *item) ref(part int) message.PartRef {
	return message.PartRef{Ref: item.Ref, Part: part}
}

// submission returns a part as carriers take it.
func (item *item) submission(part int) carrier.Submission {
	m, p := &item.msg, &item.msg.Parts[part]
	return carrier.Submission{
		ID: item.ref(part).String(), From: m.Originator, To: m.Destination, Coding: int(m.Coding),
		UDH: p.UDH, Data: p.Data, Text: p.Text, Flash: m.Flash,
		Replace: m.Replace && len(m.Parts) == 1, // a part of several would replace the one before
	}
}

// accept puts a message that is leased until end into its carrier's queue. It returns
// false only if that is full, another gateway sends the carrier's messages, the worker stops or
// the gate is closed: a message that is held already, or has nothing to do, needs no place.
func (w *Worker) accept(m *message.Message, end time.Time) bool {
	if w.leases.Closed() {
		return false
	}
	q := w.router.queueFor(m.Destination)
	if q != nil && q.heldElsewhere() {
		return false
	}
	item := &item{Hold: lease.NewHold(m.Ref(), end), msg: *m}
	outcomes := w.classifyParts(item, q)
	n := len(item.queued) + len(outcomes)
	if n == 0 || !w.leases.Add(&item.Hold) { // nothing to do, or its outcome is not saved yet
		return true
	}
	item.unfinished.Store(int32(n))
	if !w.enqueue(q, item) {
		w.leases.Drop(item.Ref)
		return false
	}
	for _, o := range outcomes {
		w.outcomes.Add(pendingOutcome{item, o, false})
	}
	return true
}

// enqueue adds an item to its queue, or returns false if that is full or the worker
// stops. An item without parts to submit needs no queue.
func (w *Worker) enqueue(q *carrierQueue, item *item) bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	return !w.stopped && (q == nil || len(item.queued) == 0 || q.add(item))
}

// classifyParts queues the parts to submit, and returns the outcomes of those
// that cannot be submitted.
func (w *Worker) classifyParts(item *item, q *carrierQueue) (outcomes []message.Outcome) {
	now := w.deps.Now()
	for n := range item.msg.Parts {
		p := &item.msg.Parts[n]
		o := message.Outcome{PartRef: item.ref(n), Carrier: p.Carrier, At: now}
		switch {
		case p.State == message.Sending && !w.isIdempotent(p.Carrier, q):
			o.State, o.Reason = message.Unknown, "the gateway ended, or lost the database, before the outcome was saved"
			outcomes = append(outcomes, o)
		case p.State == message.Sending:
			item.queued, item.resubmit = append(item.queued, n), true
		case p.State != message.Pending || p.ScheduledAt.After(now):
		case q == nil:
			o.State, o.Refund, o.Reason = message.Rejected, true, "there is no carrier for the number"
			outcomes = append(outcomes, o)
		default:
			item.queued = append(item.queued, n)
		}
	}
	return outcomes
}

// isIdempotent reports whether the queue's carrier is the one that the part was
// submitted to, and recognizes duplicates.
func (w *Worker) isIdempotent(carrier string, q *carrierQueue) bool {
	return q != nil && q.route.Name == carrier && q.route.Idempotent
}

// partsDone records that n parts of an item are done, and ends the hold on it once
// none is left.
func (w *Worker) partsDone(item *item, n int) {
	if item.unfinished.Add(int32(-n)) == 0 && w.leases.Drop(item.Ref) {
		relay.Notify(w.capacityFreed)
	}
}

const (
	// maxLeased is the largest number of messages that are leased at a time.
	maxLeased = 500
	// storeTimeout bounds a call of the store.
	storeTimeout = 5 * time.Second
	// congestedDelay is the time for which a message is released for if its carrier's queue
	// is full and not sending.
	congestedDelay = 5 * time.Second
)

// leaseLoop leases due messages while the queues have capacity.
func (w *Worker) leaseLoop() {
	tick := time.NewTicker(w.opts.Poll)
	defer tick.Stop()
	for w.runCtx.Err() == nil {
		if w.leaseBatch() {
			continue
		}
		select {
		case <-tick.C:
		case <-w.capacityFreed:
		case <-w.runCtx.Done():
		}
	}
}

// leaseBatch leases one batch, and reports whether there may be more and
// capacity for it.
func (w *Worker) leaseBatch() bool {
	w.leases.ReleaseSpare(w.runCtx)
	limit := min(maxLeased, w.freeCapacity())
	if limit <= 0 || w.leases.Closed() {
		return false
	}
	ctx, cancel := context.WithTimeout(w.runCtx, storeTimeout)
	defer cancel()
	now := w.deps.Now()
	if now.Before(w.leaveUntil) {
		return false
	}
	until := now.Add(w.opts.Lease)
	ms, err := w.deps.Work.LeaseDue(ctx, now, until, limit)
	if err != nil && w.runCtx.Err() == nil {
		w.log.Warn("cannot lease due messages", "error", err)
	}
	full := w.acceptAll(ms, until)
	if len(ms) > 0 && !slices.ContainsFunc(ms, w.mayAccept) {
		w.leaveUntil = now.Add(congestedDelay)
	}
	w.leases.ReleaseAfter(w.runCtx, full)
	return err == nil && len(ms) == limit && len(full) == 0
}

// acceptAll accepts messages that are leased until end, and returns those without
// capacity, by how long they are released for.
func (w *Worker) acceptAll(ms []message.Message, end time.Time) lease.Unplaced[message.Ref] {
	full := make(lease.Unplaced[message.Ref])
	for i := range ms {
		if w.accept(&ms[i], end) {
			continue
		}
		after := w.opts.Poll
		if q := w.router.queueFor(ms[i].Destination); q != nil && !q.sending() && !q.heldElsewhere() {
			after = congestedDelay
		}
		full[after] = append(full[after], message.Lease{Ref: ms[i].Ref(), End: end})
	}
	return full
}

// mayAccept reports whether no other gateway sends the messages of the carrier of a message.
func (w *Worker) mayAccept(m message.Message) bool {
	q := w.router.queueFor(m.Destination)
	return q == nil || !q.heldElsewhere()
}

// freeCapacity returns how many parts fit in the queues. Without a carrier, messages
// are leased to be rejected.
func (w *Worker) freeCapacity() (n int) {
	if len(w.queues) == 0 {
		return maxLeased
	}
	for _, q := range w.queues {
		n += q.freeCapacity()
	}
	return n
}
