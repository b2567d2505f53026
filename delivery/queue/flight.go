package queue

import (
	"net/url"
	"sync"
	"time"

	"github.com/penstock/penstock/relay/outbox"
)

// item is a delivery that this process holds the lease of.
type item struct {
	d     outbox.Delivery
	lease time.Time // its end, as last saved
	lane  *lane
	// task is set if an asynq task waits for the outcome of this attempt.
	task bool
}

func (it *item) ref() outbox.Ref { return outbox.Ref{Account: it.d.Account, ID: it.d.ID} }

// lane is what goes to one endpoint.
type lane struct {
	name    string
	running int
	waiting []*item
	took    time.Duration // moving average of an attempt
}

// drain estimates when what waits in the lane will have been tried.
func (l *lane) drain(slots int) time.Duration {
	return l.took * time.Duration(len(l.waiting)+1) / time.Duration(slots)
}

// flight is everything this process holds: what runs and what waits in memory.
type flight struct {
	opts Options
	now  func() time.Time
	run  func(*item)

	mu      sync.Mutex
	held    map[string]*item
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
		held: make(map[string]*item), lanes: make(map[string]*lane),
		empty: make(chan struct{}), room: make(chan struct{}, 1),
	}
}

// endpoint names the lane of a delivery: its host, or mail, which all goes
// through one server.
func endpoint(d *outbox.Delivery) string {
	if d.Request == nil {
		return "mail"
	}
	u, err := url.Parse(d.Request.URL)
	if err != nil {
		return "unreadable"
	}
	return u.Host
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
	l := f.lane(endpoint(&it.d))
	switch {
	case len(l.waiting) == 0 && f.free(l):
		f.begin(l, it)
		go f.work(it)
	case len(l.waiting) < f.opts.EndpointBacklog && f.waiting < f.opts.Backlog:
		f.queue(l, it)
	default:
		f.drop(l)
		return full
	}
	return taken
}

// enter starts a delivery in the caller's goroutine, which calls leave
// afterwards; false if its endpoint has no place now.
func (f *flight) enter(it *item) admission {
	f.mu.Lock()
	defer f.mu.Unlock()
	if f.stopped {
		return refused
	}
	if f.held[it.d.ID] != nil {
		return taken
	}
	l := f.lane(endpoint(&it.d))
	if !f.free(l) {
		f.drop(l)
		return full
	}
	f.begin(l, it)
	return taken
}

// lane returns the lane of that name, which may be new.
func (f *flight) lane(name string) *lane {
	l := f.lanes[name]
	if l == nil {
		l = &lane{name: name, took: 50 * time.Millisecond}
		f.lanes[name] = l
	}
	return l
}

// free reports whether a lane may have one more attempt under way. The less
// room is left in all, the less one lane gets, so that a few endpoints that hang
// never take it all.
func (f *flight) free(l *lane) bool {
	left := f.opts.Attempts - f.running
	return left > 0 && l.running < min(f.opts.PerEndpoint, max(1, left/2))
}

func (f *flight) begin(l *lane, it *item) {
	it.lane = l
	l.running++
	f.running++
	f.held[it.d.ID] = it
}

func (f *flight) queue(l *lane, it *item) {
	it.lane = l
	if len(l.waiting) == 0 {
		f.behind = append(f.behind, l)
	}
	l.waiting = append(l.waiting, it)
	f.waiting++
	f.held[it.d.ID] = it
}

// drop forgets a lane with nothing in it.
func (f *flight) drop(l *lane) {
	if l.running == 0 && len(l.waiting) == 0 {
		delete(f.lanes, l.name)
	}
}
