package submit

import (
	"cmp"
	"context"
	"errors"
	"log/slog"
	"sync"
	"time"

	"github.com/penstock/penstock/relay/message"
)

// Network is what binds carriers' ids to parts and tells accounts what became of
// their messages; *message.Network is one.
type Network interface {
	// Bind keeps which parts ids name, and records the receipts that came before.
	Bind(ctx context.Context, bindings []message.Binding) error
	// Tell has reports sent about messages; what it cannot is told later.
	Tell(ctx context.Context, ms []message.Message) error
}

// Deps are what a worker stands on. Work and Network are needed.
type Deps struct {
	Work    message.Work
	Network Network
	Routes  []Route
	Logger  *slog.Logger     // nil means slog.Default
	Now     func() time.Time // nil means time.Now
}

// Options tune a worker; the zero value works.
type Options struct {
	// Lease is how long a message is leased at a time, and so how long what a dead
	// process had in hand waits; 0 means 15 s. What is in hand is leased on.
	Lease time.Duration
	// Poll is how often is looked for what is due; 0 means 250 ms.
	Poll time.Duration
	// Backlog is how many parts may wait in a carrier's line; 0 means the
	// carrier's window eight times, and 256 at least.
	Backlog int
	// GiveUp is how long a message is tried whose carrier fails; 0 means a day.
	GiveUp time.Duration
	// FirstPause and LongestPause are how long a carrier that throttles is left
	// alone; 0 means 250 ms and 30 s.
	FirstPause, LongestPause time.Duration
}

func (o *Options) complete() {
	o.Lease = cmp.Or(o.Lease, 15*time.Second)
	o.Poll = cmp.Or(o.Poll, 250*time.Millisecond)
	o.GiveUp = cmp.Or(o.GiveUp, 24*time.Hour)
	o.FirstPause, o.LongestPause = cmp.Or(o.FirstPause, 250*time.Millisecond), cmp.Or(o.LongestPause, 30*time.Second)
}

// Worker submits messages. It is a message.Dispatcher.
type Worker struct {
	deps   Deps
	o      Options
	log    *slog.Logger
	lanes  []*lane
	router router
	book   *book

	mu       sync.Mutex
	held     map[message.Ref]*item // in hand
	overflow []message.Ref         // dispatched, without room
	stopped  bool

	room    chan struct{} // told when there is room in a lane, or overflow
	claims  context.Context
	end     context.CancelFunc // of claims and lanes
	life    context.Context    // of what carriers are asked
	cut     context.CancelFunc
	running sync.WaitGroup
}

// New makes a worker, which Start sets to work.
func New(deps Deps, o Options) (*Worker, error) {
	if deps.Work == nil || deps.Network == nil {
		return nil, errors.New("submit: store and network are needed")
	}
	o.complete()
	deps.Logger = cmp.Or(deps.Logger, slog.Default())
	if deps.Now == nil {
		deps.Now = time.Now
	}
	w := &Worker{
		deps: deps, o: o, log: deps.Logger, held: make(map[message.Ref]*item), room: make(chan struct{}, 1),
	}
	w.claims, w.end = context.WithCancel(context.Background())
	w.life, w.cut = context.WithCancel(context.Background())
	for _, r := range deps.Routes {
		w.lanes = append(w.lanes, newLane(w, r))
	}
	w.router = newRouter(w.lanes)
	w.book = newBook(w)
	return w, nil
}

// Lease is how long the worker needs what it is given to be leased.
func (w *Worker) Lease() time.Duration { return w.o.Lease }

// Start begins to claim and to submit.
func (w *Worker) Start() {
	w.running.Go(w.claim)
	w.running.Go(w.renew)
	for _, l := range w.lanes {
		w.running.Go(l.run)
	}
	go w.book.run()
}

// Wake has a carrier tried at once that had to wait: it is bound again.
func (w *Worker) Wake(name string) {
	for _, l := range w.lanes {
		if l.route.Name == name {
			l.resumeNow()
		}
	}
}

// Dispatch submits messages that were saved under a lease. Those without room
// are given back, and claimed when there is some.
func (w *Worker) Dispatch(ms []message.Message) {
	for i := range ms {
		if !w.take(&ms[i]) {
			w.mu.Lock()
			w.overflow = append(w.overflow, ms[i].Ref())
			w.mu.Unlock()
		}
	}
}

// Stop submits nothing more, waits for the answers that carriers owe and saves
// what they are, for as long as ctx allows, and gives back the rest.
func (w *Worker) Stop(ctx context.Context) error {
	w.mu.Lock()
	w.stopped = true
	w.mu.Unlock()
	w.end()
	w.running.Wait()
	w.land(ctx, owed)
	w.cut() // what is not answered by now
	w.land(ctx, time.Second)
	var refs []message.Ref
	for _, l := range w.lanes {
		refs = append(refs, l.abandon()...)
	}
	err := w.release(ctx, refs, w.deps.Now())
	return errors.Join(err, w.book.stop(ctx))
}

// owed is how long the end waits for what carriers owe.
const owed = 5 * time.Second

// land waits until nothing is under way, for so long at most.
func (w *Worker) land(ctx context.Context, atMost time.Duration) {
	ctx, cancel := context.WithTimeout(ctx, atMost)
	defer cancel()
	for _, l := range w.lanes {
		l.settle(ctx)
	}
}

// Stats is what is counted of a carrier: its line now, and what became of parts
// since the start.
type Stats struct {
	Carrier           string
	Waiting, UnderWay int
	Accepted          int
	Rejected          int
	Throttled         int // answers that said to go slower, or that nobody is there
	Unknown           int
}

// Stats returns what is counted of each carrier, in the order of the routes.
func (w *Worker) Stats() []Stats {
	all := make([]Stats, len(w.lanes))
	for i, l := range w.lanes {
		all[i] = l.counted()
	}
	return all
}

func tell(c chan struct{}) {
	select {
	case c <- struct{}{}:
	default:
	}
}
