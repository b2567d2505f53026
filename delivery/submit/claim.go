package submit

import (
	"context"
	"time"

	"github.com/penstock/penstock/delivery/lease"
	"github.com/penstock/penstock/relay/message"
)

const (
	// maxClaim is how many messages are claimed at a time.
	maxClaim = 500
	// storeTimeout bounds a call of the store.
	storeTimeout = 5 * time.Second
	// congestedDelay is how long a message is released for if its carrier's
	// queue is full and not sending.
	congestedDelay = 5 * time.Second
)

// claim claims due messages while the queues have capacity.
func (w *Worker) claim() {
	tick := time.NewTicker(w.opts.Poll)
	defer tick.Stop()
	for {
		more := w.claimBatch()
		if more {
			if w.claimCtx.Err() != nil {
				return
			}
			continue
		}
		select {
		case <-tick.C:
		case <-w.capacityFreed:
		case <-w.claimCtx.Done():
			return
		}
	}
}

// claimBatch claims one batch, and reports whether there may be more and
// capacity for it.
func (w *Worker) claimBatch() bool {
	w.leases.ReleaseSpare(w.claimCtx)
	limit := min(maxClaim, w.freeCapacity())
	if limit <= 0 {
		return false
	}
	ctx, cancel := context.WithTimeout(w.claimCtx, storeTimeout)
	defer cancel()
	now := w.deps.Now()
	ms, err := w.deps.Work.Claim(ctx, now, now.Add(w.opts.Lease), limit)
	if err != nil && w.claimCtx.Err() == nil {
		w.log.Warn("messages cannot be claimed", "error", err)
	}
	full := w.acceptAll(ms)
	w.leases.ReleaseAfter(w.claimCtx, full)
	return err == nil && len(ms) == limit && len(full) == 0
}

// acceptAll accepts messages and returns those without capacity, by how long
// they are released for.
func (w *Worker) acceptAll(ms []message.Message) lease.Unplaced[message.Ref] {
	full := make(lease.Unplaced[message.Ref])
	for i := range ms {
		if w.accept(&ms[i]) {
			continue
		}
		after := w.opts.Poll
		if q := w.router.queueFor(ms[i].Destination); q != nil && !q.sending() {
			after = congestedDelay
		}
		full[after] = append(full[after], message.Lease{Ref: ms[i].Ref(), End: w.leaseEnd()})
	}
	return full
}

// freeCapacity returns how many parts may be claimed. Without a carrier, messages
// are claimed to be rejected.
func (w *Worker) freeCapacity() (n int) {
	if len(w.queues) == 0 {
		return maxClaim
	}
	for _, q := range w.queues {
		n += q.freeCapacity()
	}
	return n
}

// leaseEnd returns when a lease that was acquired just now ends at the latest.
func (w *Worker) leaseEnd() time.Time { return w.deps.Now().Add(w.opts.Lease) }
