package queue

import (
	"context"
	"time"

	"github.com/penstock/penstock/relay/outbox"
)

// window is how many due deliveries are looked at in one pass.
const window = 1000

// stale is how long a delivery may stay due although it has a task: then asynq
// has lost it or is far behind, and it is attempted in process.
const stale = 5 * time.Second

// reconcileLoop wakes what is due until ctx ends.
func (q *Queue) reconcileLoop(ctx context.Context) {
	first := make(map[outbox.Ref]time.Time) // when a due delivery was seen first
	for {
		n := q.reconcile(ctx, first)
		pause := q.opts.Reconcile
		if n >= window { // more may lie behind
			pause /= 10
		}
		if !sleep(ctx, q.life, pause) {
			return
		}
	}
}

// reconcile looks at what is due once and returns how many there were.
func (q *Queue) reconcile(ctx context.Context, first map[outbox.Ref]time.Time) int {
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
		if !q.flight.holds(ref.ID) && !q.book.has(ref.ID) && !q.rouse(ctx, ref, first, now) {
			return 0
		}
	}
	for ref := range first {
		if !seen[ref] {
			delete(first, ref)
		}
	}
	return len(refs)
}

// rouse makes the task of a due delivery the first time it is seen, and
// attempts it in process when that has not helped. False means that Redis does
// not answer.
func (q *Queue) rouse(ctx context.Context, ref outbox.Ref, first map[outbox.Ref]time.Time, now time.Time) bool {
	since, known := first[ref]
	if known && now.Sub(since) < stale {
		return true
	}
	if !known {
		if _, err := q.set(ctx, alarm{ref, now}); err != nil {
			return false
		}
		first[ref] = now
		return true
	}
	d, ok, err := q.deps.Store.Lease(ctx, ref.Account, ref.ID, now, now.Add(q.opts.Lease))
	if err != nil || !ok {
		return err == nil
	}
	delete(first, ref)
	// Without a task of its own (asynq's comes to nothing) it gets one again.
	if it := (&item{d: d, lease: now.Add(q.opts.Lease)}); q.flight.admit(it) != taken {
		q.giveBack([]outbox.Ref{ref}, now.Add(q.flight.later(&d)))
	}
	return true
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
