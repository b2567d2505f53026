package queue

import (
	"sync"
	"time"

	"github.com/penstock/penstock/relay/outbox"
)

// item is a delivery whose lease this process holds.
type item struct {
	delivery outbox.Delivery
	leaseEnd time.Time // as last confirmed by the store
	leaseMax time.Time // in the store at the latest, if a renewal succeeded whose answer was lost
	queue    *endpointQueue
}

func (item *item) ref() outbox.Ref {
	return outbox.Ref{Account: item.delivery.Account, ID: item.delivery.ID}
}

// lease returns the lease for the store to compare with its own.
func (item *item) lease() outbox.Lease {
	end := item.leaseEnd
	if end.Before(item.leaseMax) {
		end = item.leaseMax
	}
	return outbox.Lease{Ref: item.ref(), End: end}
}

// inFlight holds every delivery leased by this process: those waiting in memory,
// those being attempted, and those whose outcome is not saved yet.
type inFlight struct {
	opts    Options
	now     func() time.Time
	attempt func(*item)

	mu            sync.Mutex
	items         map[string]*item
	leasing       map[string]bool // deliveries whose lease is being acquired
	queues        map[string]*endpointQueue
	backlogged    []*endpointQueue // queues with waiting items, scanned round-robin
	running       int
	waiting       int
	stopped       bool
	drained       chan struct{} // closed when stopped and no attempt runs
	capacityFreed chan struct{} // notified when a waiting item starts
}

func newInFlight(o Options, now func() time.Time, run func(*item)) *inFlight {
	return &inFlight{
		opts: o, now: now, attempt: run,
		items: make(map[string]*item), leasing: make(map[string]bool), queues: make(map[string]*endpointQueue),
		drained: make(chan struct{}), capacityFreed: make(chan struct{}, 1),
	}
}

// admission is the result of admit.
type admission int

const (
	admitted admission = iota // it runs, waits, or was admitted before
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
	if f.items[item.delivery.ID] != nil {
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
		f.removeIfEmpty(q)
		return full
	}
	return admitted
}
