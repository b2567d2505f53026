package queue

import (
	"context"
	"errors"
	"log/slog"
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"time"

	"github.com/hibiken/asynq"

	"github.com/penstock/penstock/delivery"
	"github.com/penstock/penstock/delivery/worker"
	"github.com/penstock/penstock/relay/outbox"
)

// Sender makes one attempt. It honours ctx.
type Sender interface {
	Send(ctx context.Context, d outbox.Delivery) worker.Result
}

// Deps is what a queue works with. Store, Redis and Send are needed.
type Deps struct {
	Store outbox.Store
	// Redis is where asynq keeps its tasks; each of its parts gets a client.
	Redis asynq.RedisConnOpt
	Send  Sender
	// Breakers shares what breakers are open; nil shares with nobody.
	Breakers outbox.Breakers
	// Schedule is nil for delivery.DefaultSchedule.
	Schedule delivery.Schedule
	Now      func() time.Time
	Rand     func() float64 // in [0, 1)
	Logger   *slog.Logger
	// Observe is told every outcome, before it is saved; it must be quick.
	Observe func(d outbox.Delivery, o outbox.Outcome)
}

// Options bounds a queue; the zero value works.
type Options struct {
	Attempts        int           // attempts at one time; 0 means 1024
	PerEndpoint     int           // of these, to one endpoint that sets no bound; 0 means 32
	Backlog         int           // deliveries that wait in memory; 0 means 16384
	EndpointBacklog int           // of these, for one endpoint; 0 means 4096
	AttemptTimeout  time.Duration // 0 means 2 min
	// Lease is how long a crash keeps a delivery from others; 0 means 30 s.
	Lease time.Duration
	// FaultDelay is the wait after a fault of our own; 0 means 10 s.
	FaultDelay time.Duration
	// BreakAfter is how many failures in a row open an endpoint's breaker; 0
	// means 10, less means never. Probe is the wait for the first probe, 0 means
	// 5 s; it doubles up to ProbeMax, 0 means 1 min.
	BreakAfter      int
	Probe, ProbeMax time.Duration
	// Servers is the number of asynq servers, each of which takes at most one
	// task per round trip; 0 means 1. Tasks is how many each holds; 0 means 256.
	Servers, Tasks int
	// Name is asynq's queue; empty means deliveries.
	Name string
	// Poll is how often asynq looks for tasks; 0 means 200 ms. Reconcile is how
	// often the store is asked what is due; 0 means 1 s.
	Poll, Reconcile time.Duration
}

// Stats is what a queue holds in memory now, and what it did so far.
type Stats struct {
	Running, Waiting, Unsaved        int
	Delivered, Retried, Dead, Faults int64
	// Held is how many deliveries wait for breakers, in all gateways; Open how
	// many breakers are open, Opened and Probed how often one was.
	Held, Open     int
	Opened, Probed int64
}

// Queue is an outbox.Dispatcher.
type Queue struct {
	deps   Deps
	opts   Options
	flight *flight
	book   *book

	breakers *breakers
	held     atomic.Int64

	client  *asynq.Client
	servers []*asynq.Server
	wanted  chan alarm // retries to be enqueued

	life     context.Context // ends when attempts must end
	end      context.CancelFunc
	upkeep   context.CancelFunc // ends the loops
	loops    sync.WaitGroup
	enqueues sync.WaitGroup

	delivered, retried, dead, faults atomic.Int64
}

// New makes a queue; it does nothing before Start.
func New(deps Deps, o Options) (*Queue, error) {
	if deps.Store == nil || deps.Redis == nil || deps.Send == nil {
		return nil, errors.New("queue: store, redis and sender are needed")
	}
	q := &Queue{deps: complete(deps), opts: defaults(o)}
	q.life, q.end = context.WithCancel(context.Background())
	q.wanted = make(chan alarm, 4096)
	q.flight = newFlight(q.opts, q.deps.Now, q.runHeld)
	q.breakers = newBreakers(q.deps, q.opts)
	q.book = newBook(q.deps.Store, q.deps.Logger, q.wake)
	q.client = asynq.NewClient(q.deps.Redis)
	for range q.opts.Servers {
		q.servers = append(q.servers, q.newServer())
	}
	return q, nil
}

func complete(d Deps) Deps {
	if d.Schedule == nil {
		d.Schedule = delivery.DefaultSchedule()
	}
	if d.Now == nil {
		d.Now = time.Now
	}
	if d.Rand == nil {
		d.Rand = rand.Float64
	}
	if d.Logger == nil {
		d.Logger = slog.Default()
	}
	if d.Observe == nil {
		d.Observe = func(outbox.Delivery, outbox.Outcome) {}
	}
	return d
}

func defaults(o Options) Options {
	for _, n := range []struct {
		value  *int
		preset int
	}{
		{&o.Attempts, 1024}, {&o.PerEndpoint, 32}, {&o.Backlog, 16384}, {&o.EndpointBacklog, 4096},
		{&o.Servers, 1}, {&o.Tasks, 256},
	} {
		if *n.value <= 0 {
			*n.value = n.preset
		}
	}
	for _, t := range []struct {
		value  *time.Duration
		preset time.Duration
	}{
		{&o.AttemptTimeout, 2 * time.Minute}, {&o.Lease, 30 * time.Second}, {&o.FaultDelay, 10 * time.Second},
		{&o.Poll, 200 * time.Millisecond}, {&o.Reconcile, time.Second},
		{&o.Probe, 5 * time.Second}, {&o.ProbeMax, time.Minute},
	} {
		if *t.value <= 0 {
			*t.value = t.preset
		}
	}
	if o.BreakAfter == 0 {
		o.BreakAfter = 10
	}
	if o.Name == "" {
		o.Name = "deliveries"
	}
	return o
}

// Lease is how long the lease must be with which a delivery is created that is
// then dispatched.
func (q *Queue) Lease() time.Duration { return q.opts.Lease }

// Stats returns what the queue holds and did.
func (q *Queue) Stats() Stats {
	running, waiting := q.flight.load()
	open, opened, probed := q.breakers.count()
	return Stats{
		Held: int(q.held.Load()), Open: open, Opened: opened, Probed: probed,
		Running: running, Waiting: waiting, Unsaved: q.book.len(),
		Delivered: q.delivered.Load(), Retried: q.retried.Load(), Dead: q.dead.Load(), Faults: q.faults.Load(),
	}
}
