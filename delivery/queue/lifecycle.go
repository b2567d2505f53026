package queue

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/penstock/penstock/delivery/lease"
	"github.com/penstock/penstock/relay"
)

// enqueueWorkers is the number of goroutines that enqueue retries in asynq and lease due
// deliveries; each call takes a round trip.
const enqueueWorkers = 8

// Start begins to process tasks and to schedule due deliveries, and has a sender make the
// attempts. Redis need not be available yet. A sender may send messages whose reports are
// deliveries, so it is made with the queue.
func (q *Queue) Start(sender Sender) error {
	q.sender = sender
	q.inFlight.open()
	upkeep, cancel := context.WithCancel(context.Background())
	q.stopLoops = cancel
	q.outcomes.Start()
	for range enqueueWorkers {
		q.enqueuing.Go(q.scheduleLoop)
	}
	if err := q.timer.Start(q.onTimer); err != nil {
		return fmt.Errorf("queue: start: %w", err)
	}
	q.loops.Go(func() { q.reconcileLoop(upkeep) })
	q.loops.Go(func() { q.startDueParked(upkeep); lease.Every(upkeep, q.opts.Reconcile, q.startDueParked) })
	q.loops.Go(func() { q.leases.RenewEvery(upkeep) })
	return nil
}

// Stop admits nothing more, releases the deliveries waiting in memory, lets running attempts
// finish and saves their outcomes. Shortly before ctx ends, it cancels the remaining
// attempts, which count as internal faults. The error describes how many outcomes are not
// saved.
func (q *Queue) Stop(ctx context.Context) error {
	q.stopLoops()
	q.loops.Wait()
	q.leases.Release(ctx, q.inFlight.stop(), q.deps.Now())

	broken := time.AfterFunc(attemptsGrace(ctx), q.cancelAttempts)
	defer broken.Stop()
	served := make(chan struct{})
	go func() {
		defer close(served)
		q.timer.Shutdown()
	}()
	relay.Wait(ctx, q.inFlight.drained)
	relay.Wait(ctx, served)
	q.cancelAttempts()
	unsaved := q.outcomes.Stop(ctx)
	if _, err := q.breakers.share(ctx); err != nil {
		q.deps.Logger.WarnContext(ctx, "cannot synchronize breakers", "error", err)
	}
	close(q.retries)
	q.enqueuing.Wait()
	err := q.timer.Close()
	if unsaved > 0 {
		err = errors.Join(err, fmt.Errorf("queue: stop: %d outcomes not saved", unsaved))
	}
	return err
}

// attemptsGrace returns how long attempts may go on, so that their outcomes can
// still be saved before ctx ends.
func attemptsGrace(ctx context.Context) time.Duration {
	deadline, ok := ctx.Deadline()
	if !ok {
		return time.Hour
	}
	remaining := time.Until(deadline)
	return remaining - min(remaining/4, 3*time.Second)
}
