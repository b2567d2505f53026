package queue

import (
	"context"
	"time"

	"github.com/penstock/penstock/relay/outbox"
)

// maxDue is the largest number of due deliveries listed in one pass.
const maxDue = 1000

// rescheduleAfter is how long after it was scheduled a delivery that is still
// due is scheduled again.
const rescheduleAfter = 5 * time.Second

// reconcileLoop schedules due deliveries until ctx ends.
func (q *Queue) reconcileLoop(ctx context.Context) {
	for {
		q.leases.ReleaseSpare(ctx)
		pause := q.opts.Reconcile
		if q.due.Pass(ctx) >= maxDue { // there may be more
			pause /= 10
		}
		if !sleep(ctx, q.attemptCtx, pause) {
			return
		}
	}
}

// scheduleDue schedules a delivery that is due, and returns when it was scheduled.
func (q *Queue) scheduleDue(_ context.Context, ref outbox.Ref, last time.Time) time.Time {
	now := q.deps.Now()
	if q.leases.Has(ref) || now.Sub(last) < rescheduleAfter {
		return last
	}
	q.schedule(retry{ref: ref})
	return now
}
