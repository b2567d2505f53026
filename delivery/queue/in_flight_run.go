package queue

import (
	"slices"
	"time"

	"github.com/penstock/penstock/delivery/lease"
	"github.com/penstock/penstock/relay/outbox"
)

// maxQueuesScanned bounds the queues scanned for the next attempt, so that many
// queues whose endpoints hang do not slow down the others.
const maxQueuesScanned = 32

// runFrom attempts an item and then those that finish returns.
func (f *inFlight) runFrom(item *item) {
	for item != nil {
		began := f.now()
		f.attempt(item)
		item = f.finish(item, f.now().Sub(began))
	}
}

// finish ends an attempt and returns the next one for the same goroutine. It
// starts a second one if there is capacity, so that concurrency can grow again.
func (f *inFlight) finish(item *item, duration time.Duration) *item {
	f.mu.Lock()
	defer f.mu.Unlock()
	q := item.queue
	q.running--
	q.avgDuration = (q.avgDuration*7 + duration) / 8
	f.running--
	first, second := f.next(q), f.next(q)
	f.removeIfEmpty(q)
	if second != nil {
		go f.runFrom(second)
	}
	if f.stopped && f.running == 0 {
		close(f.drained)
	}
	return first
}

// next starts a waiting item: of queue q if its limits allow it, else of the
// next backlogged queue that may start one.
func (f *inFlight) next(q *endpointQueue) *item {
	if len(q.waiting) > 0 && f.canStart(q) {
		return f.startFirst(q)
	}
	for range min(maxQueuesScanned, len(f.backlogged)) {
		q := f.backlogged[0]
		f.backlogged = append(f.backlogged[1:], q)
		if f.canStart(q) {
			return f.startFirst(q)
		}
	}
	return nil
}

// startFirst starts the first waiting item of a queue.
func (f *inFlight) startFirst(q *endpointQueue) *item {
	item := q.waiting[0]
	q.waiting[0] = nil
	q.waiting = q.waiting[1:]
	f.waiting--
	if len(q.waiting) == 0 {
		q.waiting = nil
		f.backlogged = slices.DeleteFunc(f.backlogged, func(b *endpointQueue) bool { return b == q })
	}
	f.start(q, item)
	lease.Notify(f.capacityFreed)
	return item
}

// capacityDelay estimates how long until a delivery's queue has capacity, in whole
// seconds.
func (f *inFlight) capacityDelay(d *outbox.Delivery) time.Duration {
	f.mu.Lock()
	defer f.mu.Unlock()
	q := f.queues[queueName(d)]
	if q == nil {
		return time.Second
	}
	return min(max(f.drainTime(q), time.Second), time.Minute).Round(time.Second)
}

// drainsSoon reports whether waiting for capacity in a delivery's queue is
// worthwhile.
func (f *inFlight) drainsSoon(d *outbox.Delivery) bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	q := f.queues[queueName(d)]
	return q != nil && !f.stopped && f.drainTime(q) < 2*time.Second
}

func (f *inFlight) load() (running, waiting int) {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.running, f.waiting
}

// stop admits nothing more and returns the leases of the waiting deliveries.
func (f *inFlight) stop() []outbox.Lease {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.stopped {
		return nil
	}
	f.stopped = true
	var leases []outbox.Lease
	for _, q := range f.backlogged {
		for _, item := range q.waiting {
			leases = append(leases, f.leases.Lease(&item.Hold))
			f.leases.Drop(item.Ref)
		}
		q.waiting = nil
	}
	f.backlogged, f.waiting = nil, 0
	if f.running == 0 {
		close(f.drained)
	}
	return leases
}

// done returns a channel that is closed once inFlight is stopped and no attempt
// runs.
func (f *inFlight) done() <-chan struct{} { return f.drained }
