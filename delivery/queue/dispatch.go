package queue

import (
	"context"
	"slices"
	"time"

	"github.com/penstock/penstock/relay/outbox"
)

// maxDispatchWait bounds how long Dispatch waits for capacity in queues that
// drain quickly. Going through the store costs far more than that.
const maxDispatchWait = 500 * time.Millisecond

// Dispatch makes the first attempts of deliveries that were just created with
// the queue's lease. It returns soon; deliveries without capacity are released
// and due at once. It waits for capacity only if all of them go to one endpoint,
// so that it delays no other, and never for rules: frames of other accounts would
// wait as well.
func (q *Queue) Dispatch(ds []outbox.Delivery) {
	var refused []*item
	anyAdmitted := false
	for i := range ds {
		if ds[i].Waits != "" {
			continue
		}
		item := newItem(ds[i], q.leaseEndOf(&ds[i]))
		if q.inFlight.admit(item) == admitted {
			anyAdmitted = true
			continue
		}
		refused = append(refused, item)
	}
	if len(refused) > 0 && ds[0].Kind != outbox.KindRule && (!anyAdmitted || sameQueue(ds)) {
		refused = q.awaitAdmission(refused)
	}
	var remainingLeases []outbox.Lease
	for _, item := range refused {
		remainingLeases = append(remainingLeases, q.leases.Lease(&item.Hold))
	}
	q.leases.Release(q.attemptCtx, remainingLeases, q.deps.Now())
}

func sameQueue(ds []outbox.Delivery) bool {
	name := queueName(&ds[0])
	return !slices.ContainsFunc(ds, func(d outbox.Delivery) bool { return queueName(&d) != name })
}

// awaitAdmission waits for capacity in queues that drain quickly and returns the
// items that found none.
func (q *Queue) awaitAdmission(items []*item) (refused []*item) {
	ctx, cancel := context.WithTimeout(q.attemptCtx, maxDispatchWait)
	defer cancel()
	for _, item := range items {
		a := q.inFlight.admit(item)
		for a == full && q.inFlight.drainsSoon(&item.delivery) && q.awaitCapacity(ctx) {
			a = q.inFlight.admit(item)
		}
		if a != admitted {
			refused = append(refused, item)
		}
	}
	return refused
}

// leaseEndOf returns the end of a created delivery's lease.
func (q *Queue) leaseEndOf(d *outbox.Delivery) time.Time {
	if !d.NextAttemptAt.IsZero() {
		return d.NextAttemptAt
	}
	return d.CreatedAt.Add(q.opts.Lease)
}

// awaitCapacity waits until a waiting item has started, or returns false if ctx
// ends first.
func (q *Queue) awaitCapacity(ctx context.Context) bool {
	select {
	case <-q.inFlight.capacityFreed:
		return true
	case <-ctx.Done():
		return false
	}
}
