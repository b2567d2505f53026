package queue

import (
	"context"
	"slices"
	"time"

	"github.com/penstock/penstock/relay/outbox"
)

// patience is how long one Dispatch waits for room in lanes that move quickly.
// Going on through the store costs far more than that.
const patience = 500 * time.Millisecond

// Dispatch makes the first attempts of deliveries that were just created with
// the queue's lease. It returns soon; what does not fit is given back to the
// store, due at once. It waits for room only where everything goes to one
// endpoint, so that no other is kept waiting.
func (q *Queue) Dispatch(ds []outbox.Delivery) {
	var left []*item
	admitted := false
	for i := range ds {
		if ds[i].Waits != "" {
			continue
		}
		it := &item{d: ds[i], lease: q.leaseOf(&ds[i])}
		if q.flight.admit(it) == taken {
			admitted = true
			continue
		}
		left = append(left, it)
	}
	if len(left) > 0 && (!admitted || sameLane(ds)) {
		left = q.insist(left)
	}
	var back []outbox.Ref
	for _, it := range left {
		back = append(back, it.ref())
	}
	q.giveBack(back, q.deps.Now())
}

func sameLane(ds []outbox.Delivery) bool {
	first := laneName(&ds[0])
	return !slices.ContainsFunc(ds, func(d outbox.Delivery) bool { return laneName(&d) != first })
}

// insist waits for room in lanes that move quickly and returns what found none.
func (q *Queue) insist(items []*item) (left []*item) {
	patient, cancel := context.WithTimeout(q.life, patience)
	defer cancel()
	for _, it := range items {
		a := q.flight.admit(it)
		for a == full && q.flight.brisk(&it.d) && q.awaitRoom(patient) {
			a = q.flight.admit(it)
		}
		if a != taken {
			left = append(left, it)
		}
	}
	return left
}

// leaseOf is when a created delivery's lease ends.
func (q *Queue) leaseOf(d *outbox.Delivery) time.Time {
	if !d.NextAttemptAt.IsZero() {
		return d.NextAttemptAt
	}
	return d.CreatedAt.Add(q.opts.Lease)
}

// awaitRoom waits until something that waited has started; false if patience
// has run out.
func (q *Queue) awaitRoom(patient context.Context) bool {
	select {
	case <-q.flight.room:
		return true
	case <-patient.Done():
		return false
	}
}

// giveBack releases leases with a short time of its own.
func (q *Queue) giveBack(refs []outbox.Ref, due time.Time) {
	ctx, cancel := context.WithTimeout(q.life, 5*time.Second)
	defer cancel()
	release(ctx, q, refs, due)
}
