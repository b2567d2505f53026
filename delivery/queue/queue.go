package queue

import (
	"cmp"
	"context"
	"errors"
	"log/slog"
	"math/rand/v2"
	"sync"
	"sync/atomic"
	"time"

	"github.com/penstock/penstock/delivery"
	"github.com/penstock/penstock/delivery/attempt"
	"github.com/penstock/penstock/delivery/lease"
	"github.com/penstock/penstock/delivery/queue/timer"
	"github.com/penstock/penstock/relay"
	"github.com/penstock/penstock/relay/outbox"
	"github.com/penstock/penstock/relay/tracing"
)

// Sender makes one attempt. It honours ctx.
type Sender interface {
	Send(ctx context.Context, d outbox.Delivery) attempt.Result
}

// Store is the part of *outbox.Store that a queue uses. Tests replace it by one that is slow.
type Store interface {
	Finish(ctx context.Context, os []outbox.Outcome) ([]outbox.Ref, error)
	Due(ctx context.Context, cutoff time.Time, limit int) ([]outbox.Ref, error)
	Lease(ctx context.Context, acct relay.AccountID, id string, now, until time.Time) (outbox.Delivery, bool, error)
	LeaseDue(ctx context.Context, refs []outbox.Ref, now, until time.Time) ([]outbox.Delivery, error)
	Renew(ctx context.Context, ls []outbox.Lease, until time.Time) ([]outbox.Ref, error)
	Release(ctx context.Context, ls []outbox.Lease, due time.Time) error
	Parked(ctx context.Context) ([]outbox.ParkedEndpoint, error)
	CountParked(ctx context.Context) (map[string]int, error)
	Take(ctx context.Context, parked outbox.ParkedEndpoint, n int, cutoff, until time.Time) ([]outbox.Delivery, error)
}

// Deps are the dependencies of a queue. Store and Redis are required.
type Deps struct {
	Store Store
	Redis timer.Redis
	// Breakers shares open breakers between gateways; nil disables sharing.
	Breakers Breakers
	// Schedule is the retry schedule; nil means delivery.DefaultSchedule.
	Schedule delivery.Schedule
	Now      func() time.Time
	Rand     func() float64  // in [0, 1)
	Tracer   *tracing.Tracer // of attempts; nil begins no spans
	Gate     lease.Gate      // while it is closed, nothing is attempted; nil means always open
	Logger   *slog.Logger
	// Observe is called with every outcome before it is saved; it must return
	// quickly.
	Observe func(d outbox.Delivery, o outbox.Outcome)
}

// Options configures a queue; the zero value works.
type Options struct {
	Attempts        int           // maximum concurrent attempts; 0 means 1024
	PerEndpoint     int           // of these, to one endpoint without a limit of its own; 0 means 32
	Backlog         int           // maximum deliveries waiting in memory; 0 means 16384
	EndpointBacklog int           // of these, for one endpoint; 0 means 4096
	AttemptTimeout  time.Duration // 0 means 2 min; HTTP requests end after httpout's timeout, 10 s
	// Lease is the time for which the deliveries of a crashed process stay leased; 0 means 30
	// s.
	Lease time.Duration
	// FaultDelay is the delay after an internal fault; 0 means 10 s.
	FaultDelay time.Duration
	// BreakAfter is the number of consecutive failures that open an endpoint's breaker; 0
	// means 10, a negative value disables it. Probe is the delay before the first probe, 0
	// means 5 s; it doubles up to ProbeMax, 0 means 1 min.
	BreakAfter      int
	Probe, ProbeMax time.Duration
	// Servers is the number of asynq servers, each of which takes at most one
	// task per round trip; 0 means 1. Tasks is the concurrency of each; 0 means
	// 256.
	Servers, Tasks int
	// Name is the name of asynq's queue; empty means deliveries.
	Name string
	// Poll is the interval at which asynq looks for tasks; 0 means 1 s.
	// Reconcile is the interval at which due deliveries are listed; 0 means 1 s.
	Poll, Reconcile time.Duration
}

// Stats are the queue's current load and its counters since the start.
type Stats struct {
	Running, Waiting, Unsaved        int
	Delivered, Retried, Dead, Faults int64
	// Parked is the number of deliveries that wait for breakers, in all gateways; it is
	// counted at intervals of a hundred times what counting takes. Open is the number of
	// breakers that are open; Opened and Probed count how often one was.
	Parked, Open   int
	Opened, Probed int64
}

// Queue implements outbox.Dispatcher.
type Queue struct {
	deps     Deps
	sender   Sender // set by Start
	opts     Options
	leases   *lease.Set[outbox.Ref]
	inFlight *inFlight
	outcomes *lease.Writer[outbox.Outcome, []outbox.Ref]

	breakers  *breakers
	parked    atomic.Int64
	nextCount time.Time // of parked deliveries; used by startDueParked only

	timer   *timer.Timer
	due     lease.Reconciler[outbox.Ref]
	retries chan retry // retries to enqueue

	attemptCtx     context.Context // ends when attempts must end
	cancelAttempts context.CancelFunc
	stopLoops      context.CancelFunc // ends the loops
	loops          sync.WaitGroup
	enqueuing      sync.WaitGroup

	delivered, retried, dead, faults atomic.Int64
}

// New returns a queue; it does nothing before Start.
func New(deps Deps, o Options) (*Queue, error) {
	if deps.Store == nil || deps.Redis == nil {
		return nil, errors.New("queue: Store and Redis are required")
	}
	q := &Queue{deps: withDefaultDeps(deps), opts: withDefaults(o)}
	q.attemptCtx, q.cancelAttempts = context.WithCancel(context.Background())
	q.retries = make(chan retry, 4096)
	q.leases = lease.NewSet(lease.Options[outbox.Ref]{Store: q.deps.Store, Gate: q.deps.Gate, Duration: q.opts.Lease, Now: q.deps.Now, Log: q.deps.Logger})
	q.inFlight = newInFlight(q.opts, q.leases, q.deps.Now, q.attemptLeased)
	q.breakers = newBreakers(q.deps, q.opts)
	q.outcomes = lease.NewWriter(lease.Outcomes[outbox.Outcome, []outbox.Ref]{
		Save: q.deps.Store.Finish, Saved: q.outcomesSaved, Refused: q.outcomeRefused, Batch: maxBatch, Log: q.deps.Logger,
	})
	q.due = lease.Reconciler[outbox.Ref]{
		Due: q.deps.Store.Due, Limit: maxDue, Gate: q.deps.Gate, Schedule: q.attemptSoon, Now: q.deps.Now, Log: q.deps.Logger.With("queue", q.opts.Name),
	}
	q.timer = timer.New(timer.Options{
		Redis: q.deps.Redis, Queue: q.opts.Name, Task: "delivery", Servers: q.opts.Servers, Concurrency: q.opts.Tasks, Poll: q.opts.Poll,
		Longest: q.opts.AttemptTimeout, Now: q.deps.Now, Log: q.deps.Logger, Level: slog.LevelWarn,
	})
	return q, nil
}

func withDefaultDeps(d Deps) Deps {
	if d.Schedule == nil {
		d.Schedule = delivery.DefaultSchedule()
	}
	if d.Now == nil {
		d.Now = time.Now
	}
	if d.Rand == nil {
		d.Rand = rand.Float64
	}
	d.Logger = cmp.Or(d.Logger, slog.Default())
	if d.Observe == nil {
		d.Observe = func(outbox.Delivery, outbox.Outcome) {}
	}
	return d
}

func withDefaults(o Options) Options {
	o.Attempts, o.PerEndpoint = cmp.Or(o.Attempts, 1024), cmp.Or(o.PerEndpoint, 32)
	o.Backlog, o.EndpointBacklog = cmp.Or(o.Backlog, 16384), cmp.Or(o.EndpointBacklog, 4096)
	o.Servers, o.Tasks = cmp.Or(o.Servers, 1), cmp.Or(o.Tasks, 256)
	o.AttemptTimeout, o.Lease = cmp.Or(o.AttemptTimeout, 2*time.Minute), cmp.Or(o.Lease, 30*time.Second)
	o.FaultDelay, o.BreakAfter = cmp.Or(o.FaultDelay, 10*time.Second), cmp.Or(o.BreakAfter, 10)
	o.Probe, o.ProbeMax = cmp.Or(o.Probe, 5*time.Second), cmp.Or(o.ProbeMax, time.Minute)
	o.Poll, o.Reconcile = cmp.Or(o.Poll, time.Second), cmp.Or(o.Reconcile, time.Second)
	o.Name = cmp.Or(o.Name, "deliveries")
	return o
}

// Lease returns the duration of the lease with which dispatched deliveries must
// be created.
func (q *Queue) Lease() time.Duration { return q.opts.Lease }

// Stats returns the queue's current load and counters.
func (q *Queue) Stats() Stats {
	running, waiting := q.inFlight.load()
	open, opened, probed := q.breakers.count()
	return Stats{
		Parked: int(q.parked.Load()), Open: open, Opened: opened, Probed: probed,
		Running: running, Waiting: waiting, Unsaved: q.outcomes.Unsaved(),
		Delivered: q.delivered.Load(), Retried: q.retried.Load(), Dead: q.dead.Load(), Faults: q.faults.Load(),
	}
}
