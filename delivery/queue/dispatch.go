package queue

import (
	"context"
	"time"

	"github.com/penstock/penstock/relay/outbox"
)

// patience is how long one Dispatch waits for room in lanes that move quickly.
// Going on through the store costs far more than that.
const patience = 500 * time.Millisecond

// Dispatch makes the first attempts of deliveries that were just created with
// the queue's lease. It returns soon; what does not fit is given back to the
// store, due at once.
func (q *Queue) Dispatch(ds []outbox.Delivery) {
	var back []outbox.Ref
	patient, cancel := context.WithTimeout(q.life, patience)
	defer cancel()
	for i := range ds {
		it := &item{d: ds[i], lease: q.leaseOf(&ds[i])}
		a := q.flight.admit(it)
		for a == full && q.flight.brisk(&it.d) {
			if !q.awaitRoom(patient) {
				break
			}
			a = q.flight.admit(it)
		}
		if a != taken {
			back = append(back, it.ref())
		}
	}
	q.giveBack(back, q.deps.Now())
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
