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
	var patient <-chan time.Time
	var back []outbox.Ref
	for _, d := range ds {
		it := &item{d: d, lease: q.leaseOf(&d)}
		for {
			a := q.flight.admit(it)
			if a == full && q.flight.brisk(&d) {
				if patient == nil {
					patient = time.After(patience)
				}
				if q.awaitRoom(patient) {
					continue
				}
			}
			if a != taken {
				back = append(back, it.ref())
			}
			break
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
func (q *Queue) awaitRoom(patient <-chan time.Time) bool {
	select {
	case <-q.flight.room:
		return true
	case <-patient:
		return false
	}
}

// giveBack releases leases with a short time of its own.
func (q *Queue) giveBack(refs []outbox.Ref, due time.Time) {
	ctx, cancel := context.WithTimeout(q.life, 5*time.Second)
	defer cancel()
	release(ctx, q, refs, due)
}
