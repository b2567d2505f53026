package submit

import (
	"context"
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
// false if the caller must release the lease: the queue is full, another gateway sends the
// carrier's messages, the worker stops or the gate is closed. It returns true without
// queueing the message if this worker has it already, or if it has no part to submit.
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
	w.mu.Lock()
	added := !w.stopped && (len(item.queued) == 0 || q.add(item))
	w.mu.Unlock()
	if !added {
		w.leases.Drop(item.Ref)
		return false
	}
	for _, o := range outcomes {
		w.outcomes.Add(pendingOutcome{item, o, false})
	}
	return true
}

// classifyParts queues the parts to submit, and returns the outcomes of those
// that cannot be submitted.
func (w *Worker) classifyParts(item *item, q *carrierQueue) (outcomes []message.Outcome) {
	now := w.deps.Now()
	isIdempotent := func(carrier string) bool { return q != nil && q.route.Name == carrier && q.route.Idempotent }
	for n := range item.msg.Parts {
		p := &item.msg.Parts[n]
		o := message.Outcome{PartRef: item.ref(n), Carrier: p.Carrier, At: now}
		switch {
		case p.State == message.Sending && !isIdempotent(p.Carrier):
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
	// fullDelay is the time for which a message is released for if its carrier's queue is
	// full; congestedDelay is the same if the queue does not send either.
	fullDelay      = 250 * time.Millisecond
	congestedDelay = 5 * time.Second
)

// leaseLoop leases due messages while the queues have capacity.
func (w *Worker) leaseLoop() {
	for w.runCtx.Err() == nil {
		leased, hasMore := w.leaseBatch()
		if hasMore {
			continue
		}
		wait := w.opts.Poll
		if leased > 0 { // others may be due behind those without capacity
			wait /= 4
		}
		timer := time.NewTimer(wait)
		select {
		case <-timer.C:
		case <-w.capacityFreed:
		case <-w.runCtx.Done():
		}
		timer.Stop()
	}
}

// leaseBatch leases one batch. It returns the number of messages, and whether there may be
// more and capacity for them.
func (w *Worker) leaseBatch() (leased int, hasMore bool) {
	w.leases.ReleaseSpare(w.runCtx)
	limit := min(maxLeased, w.freeCapacity())
	if limit <= 0 || w.leases.Closed() {
		return 0, false
	}
	ctx, cancel := context.WithTimeout(w.runCtx, storeTimeout)
	defer cancel()
	now := w.deps.Now()
	if now.Before(w.leaveUntil) {
		return 0, false
	}
	until := now.Add(leaseTime)
	ms, err := w.deps.Work.LeaseDue(ctx, now, until, limit)
	if err != nil && w.runCtx.Err() == nil {
		w.log.Warn("cannot lease due messages", "error", err)
	}
	full := make(lease.Unplaced[message.Ref]) // by how long the messages are released for
	sentElsewhere := 0                        // by another gateway
	for i := range ms {
		q := w.router.queueFor(ms[i].Destination)
		isElsewhere := q != nil && q.heldElsewhere()
		if isElsewhere {
			sentElsewhere++
		}
		if w.accept(&ms[i], until) {
			continue
		}
		delay := fullDelay
		if q != nil && !isElsewhere && !q.sending() {
			delay = congestedDelay
		}
		full[delay] = append(full[delay], message.Lease{Ref: ms[i].Ref(), End: until})
	}
	if len(ms) > 0 && sentElsewhere == len(ms) {
		w.leaveUntil = now.Add(congestedDelay)
	}
	w.leases.ReleaseAfter(w.runCtx, full)
	return len(ms), err == nil && len(ms) == limit && len(full) == 0
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
