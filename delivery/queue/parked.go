package queue

import (
	"context"
	"time"

	"github.com/penstock/penstock/relay/outbox"
)

// parkedBatch is the number of parked deliveries of an endpoint that are leased in one round
// trip. maxParkedPerPass is the maximum number for one endpoint in one pass, so that other
// endpoints do not wait long.
const (
	parkedBatch      = 200
	maxParkedPerPass = 2000
)

// startDueParked shares the states of the breakers and starts parked deliveries. While Redis
// is down, it uses the states in this process.
func (q *Queue) startDueParked(ctx context.Context) {
	lost, err := q.breakers.share(ctx)
	if err != nil && ctx.Err() == nil {
		q.deps.Logger.WarnContext(ctx, "cannot synchronize breakers", "error", err)
	}
	endpoints, err := q.deps.Store.ParkedEndpoints(ctx)
	if err != nil {
		if ctx.Err() == nil {
			q.deps.Logger.WarnContext(ctx, "cannot list parked deliveries", "error", err)
		}
		return
	}
	if lost {
		if err := q.breakers.restore(ctx, endpoints); err != nil && ctx.Err() == nil {
			q.deps.Logger.WarnContext(ctx, "cannot restore breakers", "error", err)
		}
	}
	q.breakers.closeIdle(endpoints)
	for _, parked := range endpoints {
		now := q.deps.Now()
		open, probeDue := q.breakers.state(parked.Endpoint)
		if !open {
			q.startParked(ctx, parked, maxParkedPerPass, time.Time{})
			continue
		}
		if !parked.FirstParkedUntil.After(now) { // the oldest parked delivery has reached its ParkedUntil
			q.startParked(ctx, parked, maxParkedPerPass, now)
		}
		if probeDue {
			q.startParked(ctx, parked, 1, time.Time{})
		}
	}

	// Count the parked deliveries for Stats. Counting reads all of them, so it is limited to
	// one percent of the time.
	began := q.deps.Now()
	switch {
	case len(endpoints) == 0:
		q.parkedCount.Store(0)
		q.nextCount = time.Time{}
	case !began.Before(q.nextCount):
		counts, err := q.deps.Store.CountParked(ctx)
		if err != nil {
			return // the next pass counts
		}
		total := 0
		for _, n := range counts {
			total += n
		}
		q.parkedCount.Store(int64(total))
		q.nextCount = began.Add(100 * q.deps.Now().Sub(began))
	}
}

// startParked leases up to n parked deliveries of an endpoint and admits them. Deliveries
// for which there is no capacity are due later.
func (q *Queue) startParked(ctx context.Context, parked outbox.ParkedEndpoint, n int, cutoff time.Time) {
	for n > 0 {
		now := q.deps.Now()
		limit := min(n, parkedBatch)
		ds, err := q.deps.Store.LeaseParked(ctx, parked, limit, cutoff, now.Add(q.opts.Lease))
		if err != nil {
			return // leased deliveries are due when their lease ends
		}
		if _, complete := q.admitAll(ds, now.Add(q.opts.Lease)); !complete || len(ds) < limit {
			return
		}
		n -= len(ds)
	}
}
