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
	scheduled := make(map[outbox.Ref]time.Time) // when a due delivery was scheduled
	for {
		n := q.reconcile(ctx, scheduled)
		pause := q.opts.Reconcile
		if n >= maxDue { // there may be more
			pause /= 10
		}
		if !sleep(ctx, q.attemptCtx, pause) {
			return
		}
	}
}

// reconcile schedules the deliveries that are due, once, and returns how many
// there were. If asynq does the same, the first to acquire the lease attempts
// it.
func (q *Queue) reconcile(ctx context.Context, scheduled map[outbox.Ref]time.Time) int {
	q.leases.ReleaseSpare(ctx)
	now := q.deps.Now()
	refs, err := q.deps.Store.Due(ctx, now, maxDue)
	if err != nil {
		if ctx.Err() == nil {
			q.deps.Logger.WarnContext(ctx, "cannot list due deliveries", "error", err)
		}
		return 0
	}
	seen := make(map[outbox.Ref]bool, len(refs))
	for _, ref := range refs {
		seen[ref] = true
		scheduledAt, known := scheduled[ref]
		if q.leases.Has(ref) || known && now.Sub(scheduledAt) < rescheduleAfter {
			continue
		}
		scheduled[ref] = now
		q.schedule(retry{ref: ref})
	}
	for ref := range scheduled {
		if !seen[ref] {
			delete(scheduled, ref)
		}
	}
	return len(refs)
}

func (q *Queue) sweep(ctx context.Context) {
	if err := q.deps.Store.Sweep(ctx); err != nil {
		q.deps.Logger.WarnContext(ctx, "expired deliveries were not deleted", "error", err)
	}
}
