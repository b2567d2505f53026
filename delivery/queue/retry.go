package queue

import (
	"context"
	"slices"
	"time"

	"github.com/penstock/penstock/delivery/lease"
	"github.com/penstock/penstock/delivery/queue/timer"
	"github.com/penstock/penstock/relay"
	"github.com/penstock/penstock/relay/outbox"
)

// scheduledAttempt is an attempt for scheduleLoop: a repeated attempt, or the first attempt of a
// delivery whose lease has expired or whose turn has come. A zero dueAt means now.
type scheduledAttempt struct {
	ref   outbox.Ref
	dueAt time.Time
}

// outcomesSaved drops the leases of deliveries. It schedules their next attempts and the deliveries
// that are next in ordered queues. If these are too many at once, the reconciler schedules
// the remaining deliveries when they are due.
func (q *Queue) outcomesSaved(saved []outbox.Outcome, nextRefs []outbox.Ref) {
	for i := range saved {
		q.leases.Drop(outbox.Ref{Account: saved[i].Account, ID: saved[i].ID})
	}
	for _, ref := range nextRefs {
		q.schedule(scheduledAttempt{ref: ref})
	}
	for i := range saved {
		if o := &saved[i]; !o.NextAttemptAt.IsZero() {
			q.schedule(scheduledAttempt{outbox.Ref{Account: o.Account, ID: o.ID}, o.NextAttemptAt})
		}
	}
}

func (q *Queue) schedule(a scheduledAttempt) {
	select {
	case q.scheduled <- a:
	default:
	}
}

// maxRound is the largest number of scheduled attempts that scheduleLoop takes at a time.
const maxRound = 200

// scheduleLoop attempts the deliveries that are due now, and creates timers for the others.
func (q *Queue) scheduleLoop() {
	for a := range q.scheduled {
		ctx, cancel := context.WithTimeout(q.attemptCtx, 5*time.Second)
		var due []outbox.Ref
		var later []scheduledAttempt
		for n, hasMore := 1, true; hasMore; n++ {
			if a.dueAt.IsZero() {
				due = append(due, a.ref)
			} else {
				later = append(later, a)
			}
			a, hasMore = q.nextScheduled(n)
		}
		if err := q.attemptDue(ctx, due); err != nil { // first: it does not need Redis
			q.logScheduleError(err)
		}
		for _, a := range later {
			if _, err := q.timer.Schedule(ctx, timer.Ref(a.ref), a.dueAt); err != nil {
				q.logScheduleError(err)
			}
		}
		cancel()
	}
}

func (q *Queue) nextScheduled(n int) (a scheduledAttempt, ok bool) {
	if n >= maxRound {
		return a, false
	}
	select {
	case a, ok = <-q.scheduled:
		return a, ok
	default:
		return a, false
	}
}

func (q *Queue) logScheduleError(err error) {
	if q.attemptCtx.Err() == nil {
		q.deps.Logger.Debug("delivery left to the reconciler", "error", err)
	}
}

// attemptDue attempts deliveries that are due. The reconciler reschedules deliveries that are
// still due afterwards.
func (q *Queue) attemptDue(ctx context.Context, refs []outbox.Ref) error {
	refs = slices.DeleteFunc(refs, func(r outbox.Ref) bool { return !q.leases.Reserve(r) })
	if len(refs) == 0 {
		return nil
	}
	defer func() {
		for _, r := range refs {
			q.leases.Unreserve(r)
		}
	}()
	now := q.deps.Now()
	ds, err := q.deps.Store.LeaseDue(ctx, refs, now, now.Add(q.opts.Lease))
	q.admitAll(ds, now.Add(q.opts.Lease))
	return err
}

// onTimer is called when a delivery is due. It leases the delivery and admits it. The task then
// ends, and a retry gets a new task, so that an endpoint that hangs does not occupy a worker
// of asynq.
func (q *Queue) onTimer(ctx context.Context, due timer.Ref) error {
	ref := outbox.Ref(due)
	if !q.leases.Reserve(ref) {
		return timer.RetryAfter(time.Second)
	}
	defer q.leases.Unreserve(ref)
	for {
		now := q.deps.Now()
		d, ok, err := q.deps.Store.Lease(ctx, ref.Account, ref.ID, now, now.Add(q.opts.Lease))
		switch {
		case relay.KindOf(err) == relay.KindNotFound || err == nil && (d.State.Ended() || d.WaitsFor != ""):
			return nil
		case err != nil:
			return err
		case ok:
			if wait, ok := q.admitAll([]outbox.Delivery{d}, now.Add(q.opts.Lease)); !ok {
				return timer.RetryAfter(wait)
			}
			return nil
		}
		// asynq has a resolution of 1 s and may call up to 1 s early.
		wait := d.NextAttemptAt.Sub(now)
		if wait > time.Second || !relay.Sleep(ctx, wait) {
			return timer.RetryAfter(wait)
		}
	}
}

// admitAll admits deliveries that were leased until leaseEnd. Deliveries for which inFlight
// has no capacity are postponed, so that they do not block other due deliveries. complete means that every
// delivery was admitted; otherwise wait is the delay of the last postponed delivery.
func (q *Queue) admitAll(ds []outbox.Delivery, leaseEnd time.Time) (wait time.Duration, complete bool) {
	unplaced := make(lease.LeasesByDelay[outbox.Ref])
	for i := range ds {
		item := newItem(ds[i], leaseEnd)
		switch q.inFlight.admit(item) {
		case admitted:
			continue
		case full:
			wait = q.inFlight.capacityDelay(&item.delivery)
		case notRunning:
			wait = 0
		}
		unplaced[wait] = append(unplaced[wait], q.leases.Lease(&item.Hold))
	}
	q.leases.ReleaseAfter(q.attemptCtx, unplaced)
	return wait, len(unplaced) == 0
}

// maxDue is the largest number of due deliveries listed in one pass.
const maxDue = 1000

// rescheduleAfter is the time after which a scheduled delivery that is still due is scheduled
// again.
const rescheduleAfter = 5 * time.Second

func (q *Queue) reconcileLoop(ctx context.Context) {
	for {
		q.leases.ReleaseSpare(ctx)
		pause := q.opts.Reconcile
		if q.reconciler.Pass(ctx) >= maxDue { // there may be more
			pause /= 10
		}
		if !relay.Sleep(ctx, pause) {
			return
		}
	}
}
