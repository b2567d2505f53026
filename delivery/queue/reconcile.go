package queue

import (
	"context"
	"time"

	"github.com/penstock/penstock/relay/outbox"
)

// window is how many due deliveries are looked at in one pass.
const window = 1000

// stale is how long after it was handed on a delivery that is still due is
// handed on again.
const stale = 5 * time.Second

// reconcileLoop wakes what is due until ctx ends.
func (q *Queue) reconcileLoop(ctx context.Context) {
	handed := make(map[outbox.Ref]time.Time) // when a due delivery was handed on
	for {
		n := q.reconcile(ctx, handed)
		pause := q.opts.Reconcile
		if n >= window { // more may lie behind
			pause /= 10
		}
		if !sleep(ctx, q.life, pause) {
			return
		}
	}
}

// reconcile looks at what is due once, has it leased and attempted, and returns
// how many there were. Where asynq is about to do the same, one of both gets the
// lease.
func (q *Queue) reconcile(ctx context.Context, handed map[outbox.Ref]time.Time) int {
	now := q.deps.Now()
	refs, err := q.deps.Store.Due(ctx, now, window)
	if err != nil {
		if ctx.Err() == nil {
			q.deps.Logger.WarnContext(ctx, "what is due is not known", "error", err)
		}
		return 0
	}
	seen := make(map[outbox.Ref]bool, len(refs))
	for _, ref := range refs {
		seen[ref] = true
		at, known := handed[ref]
		if q.flight.holds(ref.ID) || q.book.has(ref.ID) || known && now.Sub(at) < stale {
			continue
		}
		handed[ref] = now
		q.want(alarm{ref: ref})
	}
	for ref := range handed {
		if !seen[ref] {
			delete(handed, ref)
		}
	}
	return len(refs)
}

// renew moves on the leases of what has been held for a while.
func (q *Queue) renew(ctx context.Context) {
	until := q.deps.Now().Add(q.opts.Lease)
	items := q.flight.leases(until.Add(-q.opts.Lease / 3))
	if len(items) == 0 {
		return
	}
	refs := make([]outbox.Ref, len(items))
	for i, it := range items {
		refs[i] = it.ref()
	}
	if err := q.deps.Store.Renew(ctx, refs, until); err != nil {
		q.deps.Logger.WarnContext(ctx, "leases were not renewed", "count", len(refs), "error", err)
		return
	}
	q.flight.renewed(items, until)
}

func (q *Queue) sweep(ctx context.Context) {
	if err := q.deps.Store.Sweep(ctx); err != nil {
		q.deps.Logger.WarnContext(ctx, "expired deliveries were not swept", "error", err)
	}
}
