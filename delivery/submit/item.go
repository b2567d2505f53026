package submit

import (
	"time"

	"github.com/penstock/penstock/delivery/carrier"
	"github.com/penstock/penstock/delivery/lease"
	"github.com/penstock/penstock/relay/message"
)

// item is a message held by the worker. Its fields are protected by the worker's
// lock, except queued, which is protected by its queue's.
type item struct {
	msg      message.Message
	queued   []int     // parts to submit, in order
	resubmit bool      // some were being sent when a process crashed
	leaseEnd time.Time // as confirmed by the store
	leaseMax time.Time // in the store at the latest, if a call succeeded whose answer was lost
	// claimedAgain means that the message was claimed while its last outcome was
	// being saved: its new lease is given back after that.
	claimedAgain bool
	// maybeMarked means that the store may have marked parts as being sent that
	// were not submitted, because its answer was lost.
	maybeMarked bool
	// unfinished counts the parts that are queued, in flight, or have an outcome
	// that is not saved.
	unfinished int
}

// lease returns the lease for the store to compare with its own.
func (item *item) lease() message.Lease {
	return message.Lease{Ref: item.msg.Ref(), End: item.leaseMax}
}

// ref returns the reference of a part.
func (item *item) ref(part int) message.PartRef {
	return message.PartRef{Ref: item.msg.Ref(), Part: part}
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

// accept puts a message into its carrier's queue, or returns false if that queue
// is full.
func (w *Worker) accept(m *message.Message) bool {
	q := w.router.queueFor(m.Destination)
	item := &item{msg: *m, leaseEnd: w.leaseEnd(), leaseMax: w.leaseEnd()}
	outcomes := w.classifyParts(item, q)
	item.unfinished = len(item.queued) + len(outcomes)
	if item.unfinished == 0 {
		return true
	}
	w.mu.Lock()
	held := w.items[m.Ref()]
	switch {
	case held != nil: // its outcome is not saved yet
		held.claimedAgain, held.leaseMax = true, item.leaseMax
		w.mu.Unlock()
		return true
	case w.stopped, q != nil && len(item.queued) > 0 && !q.add(item):
		w.mu.Unlock()
		return false
	}
	w.items[m.Ref()] = item
	w.mu.Unlock()
	for _, o := range outcomes {
		w.outcomes.Add(pendingOutcome{item, o, false})
	}
	return true
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
			o.State, o.Reason = message.Unknown, "the gateway ended before the carrier had answered"
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

// partsDone records that n parts of an item are done, and removes the item once
// none is left.
func (w *Worker) partsDone(item *item, n int) {
	w.mu.Lock()
	defer w.mu.Unlock()
	if item.unfinished -= n; item.unfinished > 0 {
		return
	}
	delete(w.items, item.msg.Ref())
	if item.claimedAgain {
		w.overflow = append(w.overflow, item.lease())
		lease.Notify(w.capacityFreed)
	}
}
