package submit

import (
	"context"
	"slices"
	"time"

	"github.com/penstock/penstock/delivery/lease"
	"github.com/penstock/penstock/relay/message"
)

const (
	// maxLeased is how many messages are leased at a time.
	maxLeased = 500
	// storeTimeout bounds a call of the store.
	storeTimeout = 5 * time.Second
	// congestedDelay is how long a message is released for if its carrier's
	// queue is full and not sending.
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
