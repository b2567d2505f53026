package queue

import (
	"slices"
	"time"

	"github.com/penstock/penstock/relay/outbox"
)

// turns is how many lanes are looked at for the next attempt at most, so that
// many lanes that hang cost the others nothing.
const turns = 32

// work makes an attempt and then those that may follow it.
func (f *flight) work(it *item) {
	for it != nil {
		began := f.now()
		f.run(it)
		it = f.follow(it, f.now().Sub(began))
	}
}

// follow ends an attempt and returns the next one for the same goroutine. If
// there is room for more it starts one more: that is how lanes grow again.
func (f *flight) follow(it *item, took time.Duration) *item {
	f.mu.Lock()
	defer f.mu.Unlock()
	l := it.lane
	l.running--
	l.took = (l.took*7 + took) / 8
	f.running--
	delete(f.held, it.d.ID)
	first, second := f.next(l), f.next(l)
	f.drop(l)
	if second != nil {
		go f.work(second)
	}
	if f.stopped && f.running == 0 {
		close(f.empty)
	}
	return first
}

// next begins something that waits: in the lane just left if it may, else in
// the lanes whose turn it is.
func (f *flight) next(l *lane) *item {
	if len(l.waiting) > 0 && f.free(l) {
		return f.shift(l)
	}
	for range min(turns, len(f.behind)) {
		l := f.behind[0]
		f.behind = append(f.behind[1:], l)
		if f.free(l) {
			return f.shift(l)
		}
	}
	return nil
}

// shift begins the first that waits in a lane.
func (f *flight) shift(l *lane) *item {
	it := l.waiting[0]
	l.waiting[0] = nil
	l.waiting = l.waiting[1:]
	f.waiting--
	if len(l.waiting) == 0 {
		l.waiting = nil
		f.behind = slices.DeleteFunc(f.behind, func(b *lane) bool { return b == l })
	}
	f.begin(l, it)
	select {
	case f.room <- struct{}{}:
	default:
	}
	return it
}

// holds reports whether this process has the delivery in hand.
func (f *flight) holds(id string) bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.held[id] != nil
}

// ask reports whether the lease of a delivery may be asked for: it is not in
// hand, and nobody else asks. It is told when what was leased is in hand.
func (f *flight) ask(id string) bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.held[id] != nil || f.asked[id] {
		return false
	}
	f.asked[id] = true
	return true
}

func (f *flight) told(id string) {
	f.mu.Lock()
	defer f.mu.Unlock()
	delete(f.asked, id)
}

// later estimates when a delivery's endpoint will have a place again.
func (f *flight) later(d *outbox.Delivery) time.Duration {
	f.mu.Lock()
	defer f.mu.Unlock()
	l := f.lanes[laneName(d)]
	if l == nil {
		return time.Second
	}
	return min(max(f.drain(l), time.Second), time.Minute)
}

// brisk reports whether it pays to wait for room in a delivery's lane.
func (f *flight) brisk(d *outbox.Delivery) bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	l := f.lanes[laneName(d)]
	return l != nil && !f.stopped && f.drain(l) < 2*time.Second
}

// leases returns what is held with a lease that ends before the given time.
func (f *flight) leases(before time.Time) []*item {
	f.mu.Lock()
	defer f.mu.Unlock()
	var out []*item
	for _, it := range f.held {
		if it.lease.Before(before) {
			out = append(out, it)
		}
	}
	return out
}

// renewed notes the new end of leases.
func (f *flight) renewed(items []*item, until time.Time) {
	f.mu.Lock()
	defer f.mu.Unlock()
	for _, it := range items {
		it.lease = until
	}
}

// lapsed reports whether an item's lease has run out: then it is no longer ours.
func (f *flight) lapsed(it *item) bool {
	f.mu.Lock()
	defer f.mu.Unlock()
	return !it.lease.After(f.now())
}

func (f *flight) load() (running, waiting int) {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.running, f.waiting
}

// stop takes nothing more and returns what waited.
func (f *flight) stop() []outbox.Ref {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.stopped {
		return nil
	}
	f.stopped = true
	var refs []outbox.Ref
	for _, l := range f.behind {
		for _, it := range l.waiting {
			refs = append(refs, it.ref())
			delete(f.held, it.d.ID)
		}
		l.waiting = nil
	}
	f.behind, f.waiting = nil, 0
	if f.running == 0 {
		close(f.empty)
	}
	return refs
}

// idle is closed once the flight was stopped and nothing runs.
func (f *flight) idle() <-chan struct{} { return f.empty }
