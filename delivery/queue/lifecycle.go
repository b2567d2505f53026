package queue

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/hibiken/asynq"

	"github.com/penstock/penstock/relay/outbox"
)

// enqueuers is how many retries are handed to asynq, and how many deliveries
// that are due are leased, side by side; each takes a round trip.
const enqueuers = 8

// Start begins to take tasks and to look for what is due, at once. Redis need
// not be there yet. ctx bounds nothing but the start.
func (q *Queue) Start(context.Context) error {
	upkeep, cancel := context.WithCancel(context.Background())
	q.upkeep = cancel
	q.book.start()
	for range enqueuers {
		q.enqueues.Go(q.enqueueLoop)
	}
	for _, s := range q.servers {
		if err := s.Start(asynq.HandlerFunc(q.process)); err != nil {
			return fmt.Errorf("queue: start: %w", err)
		}
	}
	q.loops.Go(func() { q.reconcileLoop(upkeep) })
	q.loops.Go(func() { q.tend(upkeep); every(upkeep, q.opts.Reconcile, q.tend) })
	q.loops.Go(func() { every(upkeep, q.opts.Lease/3, q.renew) })
	q.loops.Go(func() { every(upkeep, time.Hour, q.sweep) })
	return nil
}

// Stop takes nothing more, gives back what waits in memory, lets attempts under
// way finish and saves their outcomes. Shortly before ctx ends, attempts are
// broken off as faults of our own. It says how many outcomes are not saved.
func (q *Queue) Stop(ctx context.Context) error {
	q.upkeep()
	q.loops.Wait()
	release(ctx, q, q.flight.stop(), q.deps.Now())

	broken := time.AfterFunc(untilCut(ctx), q.end)
	defer broken.Stop()
	served := make(chan struct{})
	go func() {
		defer close(served)
		for _, s := range q.servers {
			s.Shutdown()
		}
	}()
	wait(ctx, q.flight.idle())
	wait(ctx, served)
	q.end()
	unsaved := q.book.stop(ctx)
	if err := q.breakers.share(ctx); err != nil {
		q.deps.Logger.WarnContext(ctx, "breakers are not shared", "error", err)
	}
	close(q.wanted)
	q.enqueues.Wait()
	err := q.client.Close()
	if unsaved > 0 {
		err = errors.Join(err, fmt.Errorf("queue: stop: %d outcomes not saved", unsaved))
	}
	return err
}

// untilCut is how long attempts may go on, so that their outcomes can still be
// saved before ctx ends.
func untilCut(ctx context.Context) time.Duration {
	deadline, ok := ctx.Deadline()
	if !ok {
		return time.Hour
	}
	left := time.Until(deadline)
	return left - min(left/4, 3*time.Second)
}

func wait(ctx context.Context, done <-chan struct{}) {
	select {
	case <-done:
	case <-ctx.Done():
	}
}

// every calls do each interval until ctx ends.
func every(ctx context.Context, interval time.Duration, do func(context.Context)) {
	t := time.NewTicker(interval)
	defer t.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-t.C:
			do(ctx)
		}
	}
}

// release gives leases back; what it cannot give back ends by itself.
func release(ctx context.Context, q *Queue, refs []outbox.Ref, due time.Time) {
	if len(refs) == 0 {
		return
	}
	if err := q.deps.Store.Release(ctx, refs, due); err != nil {
		q.deps.Logger.WarnContext(ctx, "leases were not given back", "count", len(refs), "error", err)
	}
}
