package submit

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"time"

	"github.com/penstock/penstock/delivery/lease"
	"github.com/penstock/penstock/relay"
	"github.com/penstock/penstock/relay/gateway"
	"github.com/penstock/penstock/relay/message"
	"github.com/penstock/penstock/relay/tracing"
)

// Store is the part of *message.Store that a worker uses; see its methods. It is an
// interface because the tests of the worker run in the time of a synctest bubble, with a
// store that is slow, down, or loses answers.
type Store interface {
	LeaseDue(ctx context.Context, now, until time.Time, limit int) ([]message.Message, error)
	Begin(ctx context.Context, beginnings []message.Beginning) ([][]int, error)
	Settle(ctx context.Context, outcomes []message.Outcome) ([]message.Message, error)
	Renew(ctx context.Context, ls []message.Lease, until time.Time) ([]message.Ref, error)
	Release(ctx context.Context, ls []message.Lease, due time.Time) error
}

// Reporter stores which parts the carriers' ids name, and reports the states of messages to
// accounts, as the methods of *message.ReceiptHandler say.
type Reporter interface {
	SaveCarrierIDs(ctx context.Context, ids []message.CarrierIDs) error
	SendReports(ctx context.Context, ms []message.Message) error
}

// Deps are the dependencies of a worker. Work and Reporter are required.
type Deps struct {
	Work     Store
	Reporter Reporter
	Routes   []Route
	Gate     *gateway.Gate    // while it is closed, nothing is submitted
	Tracer   *tracing.Tracer  // of submissions; nil begins no spans
	Logger   *slog.Logger     // nil means slog.Default
	Now      func() time.Time // nil means time.Now
}

// Options tune a worker; the zero value works.
type Options struct {
	// Poll is the interval at which messages are leased that became due: those that were
	// scheduled, or are retried, and those of other gateways. 0 means 1 s. After a poll that
	// leased some it is a quarter of that.
	Poll time.Duration
	// Backlog is the largest number of parts that may wait in a carrier's queue; 0 means
	// eight times the carrier's window, and at least 256.
	Backlog int
}

const (
	// leaseTime is the duration of a message's lease, and so how long the messages of a
	// crashed process wait. Leases of messages in memory are renewed.
	leaseTime = 15 * time.Second
	// giveUpAfter is the time for which a message is retried while its carrier fails.
	giveUpAfter = 24 * time.Hour
	// minPause and maxPause bound the pause after a carrier throttles.
	minPause = 250 * time.Millisecond
	maxPause = 30 * time.Second
)

// Worker submits messages to carriers. It implements message.Submitter.
type Worker struct {
	deps     Deps
	opts     Options
	log      *slog.Logger
	queues   []*carrierQueue
	router   router
	outcomes *lease.Writer[pendingOutcome, struct{}]

	leases *lease.Set[message.Ref]
	// leaveUntil is until when nothing is leased, because other gateways hold the binds for
	// all that was leased last. Only leaseLoop uses it.
	leaveUntil time.Time

	mu      sync.Mutex
	stopped bool

	capacityFreed chan struct{} // notified when a queue has capacity or a message is due
	runCtx        context.Context
	stopRun       context.CancelFunc // ends the lease loop and the queues
	submitCtx     context.Context    // context of submissions
	cancelSubmits context.CancelFunc
	running       sync.WaitGroup
}

// New returns a worker; it does nothing before Start.
func New(deps Deps, o Options) (*Worker, error) {
	if deps.Work == nil || deps.Reporter == nil {
		return nil, errors.New("submit: Work and Reporter are required")
	}
	o.Poll = cmp.Or(o.Poll, time.Second)
	deps.Logger = cmp.Or(deps.Logger, slog.Default())
	if deps.Now == nil {
		deps.Now = time.Now
	}
	w := &Worker{
		deps: deps, opts: o, log: deps.Logger, capacityFreed: make(chan struct{}, 1),
		leases: lease.NewSet(lease.Options[message.Ref]{Store: deps.Work, Gate: deps.Gate, Duration: leaseTime, Now: deps.Now, Log: deps.Logger}),
	}
	w.runCtx, w.stopRun = context.WithCancel(context.Background())
	w.submitCtx, w.cancelSubmits = context.WithCancel(context.Background())
	for _, r := range deps.Routes {
		w.queues = append(w.queues, newCarrierQueue(w, r))
	}
	w.router = newRouter(w.queues)
	w.outcomes = lease.NewWriter(lease.Outcomes[pendingOutcome, struct{}]{
		Save: w.saveOutcomes, Batch: maxBatch, Log: w.log,
		Saved: func(batch []pendingOutcome, _ struct{}) {
			for i := range batch {
				if batch[i].correction {
					continue
				}
				w.partsDone(batch[i].item, 1)
				o := &batch[i].outcome
				if wait := o.RetryAt.Sub(deps.Now()); o.State == message.Pending && wait < w.opts.Poll {
					time.AfterFunc(wait, func() { relay.Notify(w.capacityFreed) }) // it is due before the next poll
				}
			}
		},
		// The part of an outcome that the store refuses stays marked as being sent, as after
		// a crash.
		Refused: func(o *pendingOutcome, err error) time.Duration {
			w.log.Error("outcome refused by the store", "account", o.outcome.Account, "msg_id", o.outcome.ID, "outcome", o.outcome.State, "error", err)
			return 0
		},
	})
	return w, nil
}

// Lease returns the lease that dispatched messages must have.
func (w *Worker) Lease() time.Duration { return leaseTime }

// Start begins to lease and submit messages.
func (w *Worker) Start() {
	w.running.Go(w.leaseLoop)
	w.running.Go(func() { w.leases.RenewEvery(w.runCtx) })
	for _, q := range w.queues {
		w.running.Go(q.run)
	}
	w.outcomes.Start()
}

// FitsSevenBit reports whether the carrier of a number encodes a text of the GSM
// alphabet in 7 bits.
func (w *Worker) FitsSevenBit(number, text string) bool {
	q := w.router.queueFor(number)
	return q == nil || q.route.FitsSevenBit == nil || q.route.FitsSevenBit(text)
}

// AcceptsOriginator reports whether the carrier of a number passes on an originator.
func (w *Worker) AcceptsOriginator(number, originator string) bool {
	q := w.router.queueFor(number)
	return q == nil || q.route.AcceptsOriginator == nil || q.route.AcceptsOriginator(originator)
}

// Simulated reports whether a simulator takes the messages to a number.
func (w *Worker) Simulated(number string) bool {
	q := w.router.queueFor(number)
	return q != nil && q.route.Name == message.Simulator
}

// Waits returns why messages to a number wait at the moment, or an empty string. Why the
// carrier cannot be reached is in its health, for operators.
func (w *Worker) Waits(number string) string {
	q := w.router.queueFor(number)
	if q != nil && q.heldElsewhere() {
		return "waits: another gateway holds the binds of the carrier " + q.route.Name
	}
	if q == nil || q.sending() {
		return ""
	}
	why := "the carrier " + q.route.Name + " throttles or cannot be reached"
	if !q.ready() {
		why = "the carrier " + q.route.Name + " is not bound"
	}
	return "waits: " + why
}

// Resume submits what waits for a carrier, one of whose binds was established.
func (w *Worker) Resume(name string) {
	if q := w.queueNamed(name); q != nil {
		relay.Notify(q.notify)
	}
}

// Dispatch submits messages that were saved under a lease until end. Those that do not
// fit are released and leased later.
func (w *Worker) Dispatch(ms []message.Message, end time.Time) {
	for i := range ms {
		if !w.accept(&ms[i], end) {
			w.leases.Spare(message.Lease{Ref: ms[i].Ref(), End: end})
		}
	}
}

// Stop stops submitting, waits for outstanding answers and saves their outcomes
// until ctx ends, and releases the remaining messages.
func (w *Worker) Stop(ctx context.Context) error {
	w.mu.Lock()
	w.stopped = true
	w.mu.Unlock()
	w.stopRun()
	w.running.Wait()
	w.waitIdle(ctx, drainTimeout)
	w.cancelSubmits() // abandons unanswered submissions
	w.waitIdle(ctx, time.Second)
	var leases []message.Lease
	for _, q := range w.queues {
		q.mu.Lock()
		for _, item := range q.waiting {
			leases = append(leases, w.leases.Lease(&item.Hold))
		}
		q.waiting, q.waitingParts = nil, 0
		q.mu.Unlock()
	}
	w.leases.Release(ctx, leases, w.deps.Now())
	if n := w.outcomes.Stop(ctx); n > 0 {
		return fmt.Errorf("submit: stop: %d outcomes not saved", n)
	}
	return nil
}

// drainTimeout bounds the wait for outstanding answers at shutdown.
const drainTimeout = 5 * time.Second

// waitIdle waits until nothing is in flight, or atMost has passed.
func (w *Worker) waitIdle(ctx context.Context, atMost time.Duration) {
	ctx, cancel := context.WithTimeout(ctx, atMost)
	defer cancel()
	for _, q := range w.queues {
		for q.snapshot().UnderWay > 0 && ctx.Err() == nil {
			select {
			case <-q.idle:
			case <-ctx.Done():
			}
		}
	}
}

// Stats are the counters of a carrier: its queue now, and its outcomes since the
// start.
type Stats struct {
	Carrier           string
	Waiting, UnderWay int
	Accepted          int
	Rejected          int
	Throttled         int // answers that throttle or report the carrier unavailable
	Unknown           int
}

// Stats returns the counters of each carrier, in the order of the routes.
func (w *Worker) Stats() []Stats {
	stats := make([]Stats, len(w.queues))
	for i, q := range w.queues {
		stats[i] = q.snapshot()
	}
	return stats
}
