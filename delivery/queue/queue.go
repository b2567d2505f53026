package queue

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"math/rand/v2"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/penstock/penstock/delivery"
	"github.com/penstock/penstock/delivery/attempt"
	"github.com/penstock/penstock/delivery/lease"
	"github.com/penstock/penstock/delivery/queue/timer"
	"github.com/penstock/penstock/relay"
	"github.com/penstock/penstock/relay/gateway"
	"github.com/penstock/penstock/relay/outbox"
	"github.com/penstock/penstock/relay/tracing"
)

// Attempter makes one attempt, which ends with ctx.
type Attempter interface {
	Send(ctx context.Context, d outbox.Delivery) attempt.Result
}

// Store is the part of *outbox.Store that a queue uses. Tests use a slow implementation.
type Store interface {
	Finish(ctx context.Context, os []outbox.Outcome) ([]outbox.Ref, error)
	Due(ctx context.Context, cutoff time.Time, limit int) ([]outbox.Ref, error)
	Lease(ctx context.Context, acct relay.AccountID, id string, now, until time.Time) (outbox.Delivery, bool, error)
	LeaseDue(ctx context.Context, refs []outbox.Ref, now, until time.Time) ([]outbox.Delivery, error)
	Renew(ctx context.Context, ls []outbox.Lease, until time.Time) ([]outbox.Ref, error)
	Release(ctx context.Context, ls []outbox.Lease, due time.Time) error
	ParkedEndpoints(ctx context.Context) ([]outbox.ParkedEndpoint, error)
	CountParked(ctx context.Context) (map[string]int, error)
	LeaseParked(ctx context.Context, parked outbox.ParkedEndpoint, n int, cutoff, until time.Time) ([]outbox.Delivery, error)
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
	Gate     *gateway.Gate   // while it is closed, nothing is attempted
	Logger   *slog.Logger
	// Observe is called with every outcome before it is saved, except with that of a delivery
	// that is parked without an attempt. It must return quickly.
	Observe func(d outbox.Delivery, o outbox.Outcome)
}

// Options configures a queue; the zero value works.
type Options struct {
	Attempts        int // maximum concurrent attempts; 0 means 1024
	PerEndpoint     int // maximum concurrent attempts to an endpoint whose pace sets none; 0 means 32
	Backlog         int // maximum deliveries waiting in memory; 0 means 16384
	EndpointBacklog int // maximum deliveries waiting for an endpoint; 0 means 4096

	// Lease is the time for which the deliveries of a crashed process stay leased; 0 means
	// 30 s.
	Lease time.Duration
	// Probe is the delay before the first probe of an endpoint whose breaker is open;
	// 0 means 5 s. The delay doubles up to ProbeMax; 0 means 1 min.
	Probe, ProbeMax time.Duration
	Tasks           int // maximum concurrent tasks of asynq; 0 means 256
	// Reconcile is the interval at which due deliveries are listed; 0 means 1 s.
	Reconcile time.Duration
}

const (
	asynqQueue = "deliveries"
	asynqPoll  = time.Second // how often asynq looks for tasks
	// attemptTimeout bounds an attempt; HTTP requests end after httpout's timeout, 10 s.
	attemptTimeout = 2 * time.Minute
	faultDelay     = 10 * time.Second // after an internal fault
	// breakAfter is the number of consecutive failures that open an endpoint's breaker.
	breakAfter = 10
)

// Stats are the queue's current load and its counters since the start.
type Stats struct {
	Running, Waiting, Unsaved        int
	Delivered, Retried, Dead, Faults int64
	// Parked is the number of deliveries that wait for breakers, in all gateways. They are
	// counted at intervals of a hundred times the duration of counting. Open is the number of
	// open breakers; Opened and Probed count how often breakers were opened and probed.
	Parked, Open   int
	Opened, Probed int64
}

// Queue implements outbox.Dispatcher.
type Queue struct {
	deps      Deps
	attempter Attempter // set by Start
	opts      Options
	leases    *lease.Set[outbox.Ref]
	inFlight  *inFlight
	outcomes  *lease.Writer[outbox.Outcome, []outbox.Ref]

	breakers    *breakers
	parkedCount atomic.Int64
	nextCount   time.Time // of parked deliveries; used by startDueParked only

	timer      *timer.Timer
	reconciler lease.Reconciler[outbox.Ref]

	scheduled chan scheduledAttempt // for scheduleLoop

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
	q.scheduled = make(chan scheduledAttempt, 4096)
	q.leases = lease.NewSet(lease.Options[outbox.Ref]{Store: q.deps.Store, Gate: q.deps.Gate, Duration: q.opts.Lease, Now: q.deps.Now, Log: q.deps.Logger})
	q.inFlight = newInFlight(q.opts, q.leases, q.deps.Now, q.makeAttempt)
	q.breakers = newBreakers(q.deps, q.opts)
	q.outcomes = lease.NewWriter(lease.WriterOptions[outbox.Outcome, []outbox.Ref]{
		Save: q.deps.Store.Finish, OnSaved: q.outcomesSaved, Batch: maxBatch, Log: q.deps.Logger,
		OnRefused: func(o *outbox.Outcome, err error) time.Duration {
			q.deps.Logger.Error("outcome refused by the store", "account", o.Account, "delivery_id", o.ID, "error", err)
			return refusedDelay
		},
	})

	q.reconciler = lease.Reconciler[outbox.Ref]{
		Due: q.deps.Store.Due, Limit: maxDue, Gate: q.deps.Gate, Now: q.deps.Now, Log: q.deps.Logger.With("queue", asynqQueue),
		Schedule: func(_ context.Context, ref outbox.Ref, scheduledAt time.Time) time.Time {
			now := q.deps.Now()
			if q.leases.Has(ref) || now.Sub(scheduledAt) < rescheduleAfter {
				return scheduledAt
			}
			q.schedule(scheduledAttempt{ref: ref})
			return now
		},
	}
	q.timer = timer.New(timer.Options{
		Redis: q.deps.Redis, Queue: asynqQueue, Task: "delivery", Concurrency: q.opts.Tasks, Poll: asynqPoll,
		MaxDuration: attemptTimeout, Now: q.deps.Now, Log: q.deps.Logger, Level: slog.LevelWarn,
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
	o.Tasks = cmp.Or(o.Tasks, 256)
	o.Lease = cmp.Or(o.Lease, 30*time.Second)
	o.Probe, o.ProbeMax = cmp.Or(o.Probe, 5*time.Second), cmp.Or(o.ProbeMax, time.Minute)
	o.Reconcile = cmp.Or(o.Reconcile, time.Second)
	return o
}

// Lease returns the duration of the lease with which dispatched deliveries must
// be created.
func (q *Queue) Lease() time.Duration { return q.opts.Lease }

// Stats returns the queue's current load and counters.
func (q *Queue) Stats() Stats {
	running, waiting := q.inFlight.counts()
	open, opened, probed := q.breakers.count()
	return Stats{
		Parked: int(q.parkedCount.Load()), Open: open, Opened: opened, Probed: probed,
		Running: running, Waiting: waiting, Unsaved: q.outcomes.Unsaved(),
		Delivered: q.delivered.Load(), Retried: q.retried.Load(), Dead: q.dead.Load(), Faults: q.faults.Load(),
	}
}

// scheduleWorkers is the number of goroutines that create timers in asynq and lease due
// deliveries; each call takes a round trip.
const scheduleWorkers = 8

// Start begins to process tasks and to schedule due deliveries. attempter makes the attempts.
// New has no such parameter because the services that the attempter needs dispatch
// deliveries and are therefore created after the queue. Redis need not be available yet.
func (q *Queue) Start(attempter Attempter) error {
	q.attempter = attempter
	q.inFlight.open()
	loopCtx, cancel := context.WithCancel(context.Background())
	q.stopLoops = cancel
	q.outcomes.Start()
	for range scheduleWorkers {
		q.enqueuing.Go(q.scheduleLoop)
	}
	if err := q.timer.Start(q.onTimer); err != nil {
		return fmt.Errorf("queue: start: %w", err)
	}
	q.loops.Go(func() { q.reconcileLoop(loopCtx) })
	q.loops.Go(func() { q.startDueParked(loopCtx); lease.Every(loopCtx, q.opts.Reconcile, q.startDueParked) })
	q.loops.Go(func() { q.leases.RenewEvery(loopCtx) })
	return nil
}

// Stop stops admitting deliveries, releases the deliveries that wait in memory, waits for
// running attempts and saves their outcomes. Shortly before ctx ends, it cancels the
// remaining attempts, which count as internal faults. The error contains the number of
// outcomes that are not saved.
func (q *Queue) Stop(ctx context.Context) error {
	q.stopLoops()
	q.loops.Wait()
	q.leases.Release(ctx, q.inFlight.stop(), q.deps.Now())

	grace := time.Hour // for attempts, so that their outcomes can be saved before ctx ends
	if deadline, ok := ctx.Deadline(); ok {
		remaining := time.Until(deadline)
		grace = remaining - min(remaining/4, 3*time.Second)
	}
	graceTimer := time.AfterFunc(grace, q.cancelAttempts)
	defer graceTimer.Stop()
	timerStopped := make(chan struct{})
	go func() {
		defer close(timerStopped)
		q.timer.Shutdown()
	}()
	relay.Wait(ctx, q.inFlight.drained)
	relay.Wait(ctx, timerStopped)
	q.cancelAttempts()
	unsaved := q.outcomes.Stop(ctx)
	if _, err := q.breakers.share(ctx); err != nil {
		q.deps.Logger.WarnContext(ctx, "cannot synchronize breakers", "error", err)
	}
	close(q.scheduled)
	q.enqueuing.Wait()
	err := q.timer.Close()
	if unsaved > 0 {
		err = errors.Join(err, fmt.Errorf("queue: stop: %d outcomes not saved", unsaved))
	}
	return err
}

// maxDispatchWait limits how long Dispatch waits for capacity in queues that drain quickly.
// Releasing a delivery to the store would delay it far longer.
const maxDispatchWait = 500 * time.Millisecond

// Dispatch makes the first attempts of deliveries that were just created with the queue's
// lease. Deliveries for which there is no capacity are released and due at once. Dispatch waits
// for capacity only if all deliveries go to one queue or none was admitted, and never for
// deliveries of rules, because waiting would delay the frames of other accounts.
func (q *Queue) Dispatch(ds []outbox.Delivery) {
	var refused []*item
	anyAdmitted := false
	for i := range ds {
		if ds[i].WaitsFor != "" {
			continue
		}
		leaseEnd := ds[i].NextAttemptAt
		if leaseEnd.IsZero() {
			leaseEnd = ds[i].CreatedAt.Add(q.opts.Lease)
		}
		item := newItem(ds[i], leaseEnd)
		if q.inFlight.admit(item) == admitted {
			anyAdmitted = true
			continue
		}
		refused = append(refused, item)
	}
	otherQueue := func(d outbox.Delivery) bool { return queueName(&d) != queueName(&ds[0]) }
	if len(refused) > 0 && ds[0].Kind != outbox.KindRule && (!anyAdmitted || !slices.ContainsFunc(ds, otherQueue)) {
		refused = q.awaitAdmission(refused)
	}
	var remainingLeases []outbox.Lease
	for _, item := range refused {
		remainingLeases = append(remainingLeases, q.leases.Lease(&item.Hold))
	}
	q.leases.Release(q.attemptCtx, remainingLeases, q.deps.Now())
}

// awaitAdmission waits for capacity in queues that drain quickly and returns the
// items that found none.
func (q *Queue) awaitAdmission(items []*item) (refused []*item) {
	ctx, cancel := context.WithTimeout(q.attemptCtx, maxDispatchWait)
	defer cancel()
	for _, item := range items {
		a := q.inFlight.admit(item)
		for a == full && ctx.Err() == nil && q.inFlight.drainsSoon(&item.delivery) {
			select {
			case <-q.inFlight.capacityFreed:
				a = q.inFlight.admit(item)
			case <-ctx.Done():
			}
		}
		if a != admitted {
			refused = append(refused, item)
		}
	}
	return refused
}
