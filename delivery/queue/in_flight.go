package queue

import (
	"slices"
	"sync"
	"time"

	"github.com/penstock/penstock/delivery/lease"
	"github.com/penstock/penstock/relay"
	"github.com/penstock/penstock/relay/outbox"
)

type item struct {
	lease.Hold[outbox.Ref]
	delivery outbox.Delivery
	queue    *endpointQueue
}

func newItem(d outbox.Delivery, leaseEnd time.Time) *item {
	return &item{Hold: lease.NewHold(outbox.Ref{Account: d.Account, ID: d.ID}, leaseEnd), delivery: d}
}

// inFlight contains the deliveries that are being attempted and the deliveries that wait in
// memory.
type inFlight struct {
	opts        Options
	leases      *lease.Set[outbox.Ref]
	now         func() time.Time
	makeAttempt func(*item)

	mu            sync.Mutex
	queues        map[string]*endpointQueue
	backlogged    []*endpointQueue // queues with waiting items, scanned round-robin
	running       int
	waiting       int
	opened        bool // set by Start
	stopped       bool
	drained       chan struct{} // closed when stopped and no attempt runs
	capacityFreed chan struct{} // notified when a waiting item starts
}

func newInFlight(o Options, leases *lease.Set[outbox.Ref], now func() time.Time, makeAttempt func(*item)) *inFlight {
	return &inFlight{
		opts: o, leases: leases, now: now, makeAttempt: makeAttempt, queues: make(map[string]*endpointQueue),
		drained: make(chan struct{}), capacityFreed: make(chan struct{}, 1),
	}
}

func (i *inFlight) open() {
	i.mu.Lock()
	defer i.mu.Unlock()
	i.opened = true
}

type admission int

const (
	admitted   admission = iota // the delivery runs, waits, or was already in flight
	full                        // no capacity
	notRunning                  // the queue has not started or is stopping, or its gate is closed
)

func (i *inFlight) admit(item *item) admission {
	i.mu.Lock()
	defer i.mu.Unlock()
	if !i.opened || i.stopped || i.leases.Closed() {
		return notRunning
	}
	if !i.leases.Add(&item.Hold) {
		return admitted
	}
	q := i.queueFor(&item.delivery)
	// A queue's share shrinks with the free capacity, and no queue holds more than it can
	// send within maxQueueDelay.
	share := max(minQueueShare, (i.opts.Backlog-i.waiting)/2)
	switch {
	case len(q.waiting) == 0 && i.canStart(q):
		i.start(q, item)
		go i.runFrom(item)
	case len(q.waiting) < min(i.opts.EndpointBacklog, share) && i.drainTime(q) <= maxQueueDelay:
		item.queue = q
		if len(q.waiting) == 0 {
			i.backlogged = append(i.backlogged, q)
		}
		q.waiting = append(q.waiting, item)
		i.waiting++
		i.scheduleNext(q)
	default:
		i.leases.Drop(item.Ref)
		i.removeIfEmpty(q)
		return full
	}
	return admitted
}

// maxQueuesScanned bounds the queues scanned for the next attempt, so that many
// queues whose endpoints hang do not slow down the others.
const maxQueuesScanned = 32

func (i *inFlight) runFrom(item *item) {
	for item != nil {
		began := i.now()
		i.makeAttempt(item)
		item = i.finish(item, i.now().Sub(began))
	}
}

// finish ends an attempt and returns the next one for the same goroutine. It
// starts a second attempt if there is capacity, so that concurrency can grow again.
func (i *inFlight) finish(item *item, duration time.Duration) *item {
	i.mu.Lock()
	defer i.mu.Unlock()
	q := item.queue
	q.running--
	q.avgDuration = (q.avgDuration*7 + duration) / 8
	i.running--
	item1, item2 := i.takeNext(q), i.takeNext(q)
	i.removeIfEmpty(q)
	if item2 != nil {
		go i.runFrom(item2)
	}
	if i.stopped && i.running == 0 {
		close(i.drained)
	}
	return item1
}

// takeNext starts a waiting item and returns it. It takes the item from queue q if q may start
// one, otherwise from the next backlogged queue that may.
func (i *inFlight) takeNext(q *endpointQueue) *item {
	if len(q.waiting) > 0 && i.canStart(q) {
		return i.startFirst(q)
	}
	for range min(maxQueuesScanned, len(i.backlogged)) {
		q := i.backlogged[0]
		i.backlogged = append(i.backlogged[1:], q)
		if i.canStart(q) {
			return i.startFirst(q)
		}
	}
	return nil
}

func (i *inFlight) startFirst(q *endpointQueue) *item {
	item := q.waiting[0]
	q.waiting[0] = nil
	q.waiting = q.waiting[1:]
	i.waiting--
	if len(q.waiting) == 0 {
		q.waiting = nil
		i.backlogged = slices.DeleteFunc(i.backlogged, func(b *endpointQueue) bool { return b == q })
	}
	i.start(q, item)
	relay.Notify(i.capacityFreed)
	return item
}

// capacityDelay estimates the time until a delivery's queue has capacity: whole seconds,
// from 1 s to 1 min.
func (i *inFlight) capacityDelay(d *outbox.Delivery) time.Duration {
	i.mu.Lock()
	defer i.mu.Unlock()
	q := i.queues[queueName(d)]
	if q == nil {
		return time.Second
	}
	return min(max(i.drainTime(q), time.Second), time.Minute).Round(time.Second)
}

func (i *inFlight) drainsSoon(d *outbox.Delivery) bool {
	i.mu.Lock()
	defer i.mu.Unlock()
	q := i.queues[queueName(d)]
	return q != nil && !i.stopped && i.drainTime(q) < 2*time.Second
}

func (i *inFlight) counts() (running, waiting int) {
	i.mu.Lock()
	defer i.mu.Unlock()
	return i.running, i.waiting
}

func (i *inFlight) stop() []outbox.Lease {
	i.mu.Lock()
	defer i.mu.Unlock()
	if i.stopped {
		return nil
	}
	i.stopped = true
	var leases []outbox.Lease
	for _, q := range i.backlogged {
		for _, item := range q.waiting {
			leases = append(leases, i.leases.Lease(&item.Hold))
			i.leases.Drop(item.Ref)
		}
		q.waiting = nil
	}
	i.backlogged, i.waiting = nil, 0
	if i.running == 0 {
		close(i.drained)
	}
	return leases
}
