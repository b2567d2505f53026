package submit

import (
	"context"
	"slices"
	"time"

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
	w.releaseOverflow()
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
	for after, leases := range full {
		if err := w.release(ctx, leases, now.Add(after)); err != nil {
			w.log.Warn("messages without room wait for their lease", "error", err)
		}
	}
	return err == nil && len(ms) == limit && len(full) == 0
}

// acceptAll accepts messages and returns those without capacity, by how long
// they are released for.
func (w *Worker) acceptAll(ms []message.Message) map[time.Duration][]message.Lease {
	full := make(map[time.Duration][]message.Lease)
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

// releaseOverflow releases messages that were dispatched and found no capacity, or
// claimed while their last outcome was being saved.
func (w *Worker) releaseOverflow() {
	w.mu.Lock()
	leases := w.overflow
	w.overflow = nil
	w.mu.Unlock()
	ctx, cancel := context.WithTimeout(w.claimCtx, storeTimeout)
	defer cancel()
	if err := w.release(ctx, leases, w.deps.Now()); err != nil {
		w.log.Warn("messages without room wait for their lease", "error", err)
	}
}

func (w *Worker) release(ctx context.Context, leases []message.Lease, due time.Time) error {
	for chunk := range slices.Chunk(leases, maxClaim) {
		if err := w.deps.Work.Release(ctx, chunk, due); err != nil {
			return err
		}
	}
	return nil
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

// renewLoop renews the leases of the items in memory.
func (w *Worker) renewLoop() {
	tick := time.NewTicker(w.opts.Lease / 4)
	defer tick.Stop()
	for {
		select {
		case <-tick.C:
			w.renewLeases()
		case <-w.claimCtx.Done():
			return
		}
	}
}

func (w *Worker) renewLeases() {
	until := w.deps.Now().Add(w.opts.Lease)
	ctx, cancel := context.WithTimeout(w.claimCtx, storeTimeout)
	defer cancel()
	for leases := range slices.Chunk(w.expiringBefore(until.Add(-w.opts.Lease/2), until), maxClaim) {
		renewed, err := w.deps.Work.Renew(ctx, leases, until)
		if err != nil {
			w.log.Warn("leases of messages are not renewed", "error", err)
			return
		}
		w.setLeaseEnd(renewed, until)
	}
}

// expiringBefore returns the leases that end before the given time, to be renewed until
// another. The answer to that may be lost; while a lease is valid, nobody else can make
// it end as late.
func (w *Worker) expiringBefore(end, until time.Time) (leases []message.Lease) {
	now := w.deps.Now()
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, item := range w.items {
		if !item.leaseEnd.Before(end) {
			continue
		}
		leases = append(leases, item.lease())
		if now.Before(item.leaseEnd) {
			item.leaseMax = until
		}
	}
	return leases
}

// setLeaseEnd records the new end of leases.
func (w *Worker) setLeaseEnd(refs []message.Ref, until time.Time) {
	w.mu.Lock()
	defer w.mu.Unlock()
	for _, ref := range refs {
		if item := w.items[ref]; item != nil {
			item.leaseEnd, item.leaseMax = until, until
		}
	}
}

func (w *Worker) leasesOf(items []*item) []message.Lease {
	w.mu.Lock()
	defer w.mu.Unlock()
	leases := make([]message.Lease, len(items))
	for i, item := range items {
		leases[i] = item.lease()
	}
	return leases
}

func (w *Worker) leaseExpired(item *item, now time.Time) bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	return !now.Before(item.leaseEnd)
}

// leaseEnd returns when a lease that was acquired just now ends at the latest.
func (w *Worker) leaseEnd() time.Time { return w.deps.Now().Add(w.opts.Lease) }
