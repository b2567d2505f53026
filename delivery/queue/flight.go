package queue

import (
	"sync"
	"time"

	"github.com/penstock/penstock/relay/outbox"
)

// item is a delivery that this process holds the lease of.
type item struct {
	d     outbox.Delivery
	lease time.Time // its end, as last saved
	lane  *lane
}

func (it *item) ref() outbox.Ref { return outbox.Ref{Account: it.d.Account, ID: it.d.ID} }

// flight is everything this process holds: what runs and what waits in memory.
type flight struct {
	opts Options
	now  func() time.Time
	run  func(*item)

	mu      sync.Mutex
	held    map[string]*item
	asked   map[string]bool // whose leases the store is being asked for
	lanes   map[string]*lane
	behind  []*lane // lanes with something waiting, in turn
	running int
	waiting int
	stopped bool
	empty   chan struct{} // closed when stopped and nothing runs
	room    chan struct{} // told when something that waited starts
}

func newFlight(o Options, now func() time.Time, run func(*item)) *flight {
	return &flight{
		opts: o, now: now, run: run,
		held: make(map[string]*item), asked: make(map[string]bool), lanes: make(map[string]*lane),
		empty: make(chan struct{}), room: make(chan struct{}, 1),
	}
}

// admission is what became of a delivery that was handed over.
type admission int

const (
	taken   admission = iota // it runs, waits, or is held already
	full                     // no room
	refused                  // the queue is stopping
)

// admit starts a delivery or lets it wait.
func (f *flight) admit(it *item) admission {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.stopped {
		return refused
	}
	if f.held[it.d.ID] != nil {
		return taken
	}
	l := f.lane(&it.d)
	switch {
	case len(l.waiting) == 0 && f.free(l):
		f.begin(l, it)
		go f.work(it)
	case f.roomy(l):
		f.queue(l, it)
	default:
		f.drop(l)
		return full
	}
	return taken
}
