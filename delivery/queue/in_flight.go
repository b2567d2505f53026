package queue

import (
	"sync"
	"time"

	"github.com/penstock/penstock/delivery/lease"
	"github.com/penstock/penstock/relay/outbox"
)

// item is a delivery whose lease this process holds.
type item struct {
	lease.Hold[outbox.Ref]
	delivery outbox.Delivery
	queue    *endpointQueue
}

func newItem(d outbox.Delivery, leaseEnd time.Time) *item {
	return &item{Hold: lease.NewHold(outbox.Ref{Account: d.Account, ID: d.ID}, leaseEnd), delivery: d}
}

// inFlight holds the deliveries that are being attempted and those that wait in
// memory.
type inFlight struct {
	opts    Options
	leases  *lease.Set[outbox.Ref]
	now     func() time.Time
	attempt func(*item)

	mu            sync.Mutex
	queues        map[string]*endpointQueue
	backlogged    []*endpointQueue // queues with waiting items, scanned round-robin
	running       int
	waiting       int
	stopped       bool
	drained       chan struct{} // closed when stopped and no attempt runs
	capacityFreed chan struct{} // notified when a waiting item starts
}

func newInFlight(o Options, leases *lease.Set[outbox.Ref], now func() time.Time, run func(*item)) *inFlight {
	return &inFlight{
		opts: o, leases: leases, now: now, attempt: run, queues: make(map[string]*endpointQueue),
		drained: make(chan struct{}), capacityFreed: make(chan struct{}, 1),
	}
}

// admission is the result of admit.
type admission int

const (
	admitted admission = iota // it runs, waits, or is held already
	full                      // no capacity
	stopping                  // the queue is stopping
)

// admit starts or enqueues a delivery.
func (f *inFlight) admit(item *item) admission {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.stopped {
		return stopping
	}
	if !f.leases.Add(&item.Hold) {
		return admitted
	}
	q := f.queueFor(&item.delivery)
	switch {
	case len(q.waiting) == 0 && f.canStart(q):
		f.start(q, item)
		go f.runFrom(item)
	case f.canEnqueue(q):
		f.enqueue(q, item)
	default:
		f.leases.Drop(item.Ref)
		f.removeIfEmpty(q)
		return full
	}
	return admitted
}
