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

// Store is the part of *message.Store that a Submitter uses. It is an interface because the
// tests of Submitter run in a synctest bubble, with a store that is slow, down, or loses
// answers.
type Store interface {
	LeaseDue(ctx context.Context, now, until time.Time, limit int) ([]message.Message, error)
	MarkSending(ctx context.Context, sendingParts []message.SendingParts) ([][]int, error)
	Settle(ctx context.Context, outcomes []message.Outcome) ([]message.Message, error)
	Renew(ctx context.Context, leases []message.Lease, until time.Time) ([]message.Ref, error)
	Release(ctx context.Context, leases []message.Lease, due time.Time) error
}

// Reporter is the part of *message.ReceiptHandler that a Submitter uses.
type Reporter interface {
	SaveCarrierIDs(ctx context.Context, ids []message.CarrierID) error
	SendReports(ctx context.Context, messages []message.Message) error
}

// Deps are the dependencies of a Submitter. Store and Reporter are required.
type Deps struct {
	Store    Store
	Reporter Reporter
	Routes   []Route
	Gate     *gateway.Gate    // while it is closed, nothing is submitted
	Tracer   *tracing.Tracer  // of submissions; nil begins no spans
	Logger   *slog.Logger     // nil means slog.Default
	Now      func() time.Time // nil means time.Now
}

// Options are optional settings; the zero value works.
type Options struct {
	// Poll is the interval at which due messages are leased: scheduled messages, retries, and
	// messages of other gateways. 0 means 1 s. After a poll that leased messages, the next poll
	// follows after a quarter of Poll; after a full batch, or when a queue has capacity, at once.
	Poll time.Duration
	// Backlog is the largest number of parts that may wait in a carrier's queue; 0 means
	// eight times the carrier's window, and at least 256.
	Backlog int
}

const (
	// leaseTime is the duration of a message's lease. After a crash, the messages of a process
	// wait for the end of their leases. Leases of messages in memory are renewed.
	leaseTime = 15 * time.Second
	// giveUpAfter is the time after which a part that fails is not retried any more.
	giveUpAfter = 24 * time.Hour
	// minPause and maxPause bound the pause after a throttled answer that requests none.
	minPause = 250 * time.Millisecond
	maxPause = 30 * time.Second
)

// Submitter leases messages and submits them to carriers. It implements message.Submitter.
type Submitter struct {
	deps     Deps
	opts     Options
	log      *slog.Logger
	queues   []*carrierQueue
	outcomes *lease.Writer[pendingOutcome, struct{}]

	leases *lease.Set[message.Ref]
	// noLeaseBefore is the time before which leaseLoop leases nothing, because other gateways
	// hold the binds for all messages of the last lease. Only leaseLoop uses it.
	noLeaseBefore time.Time

	mu      sync.Mutex
	stopped bool

	capacityFreed chan struct{} // notified when a queue has capacity or a message is due
	runCtx        context.Context
	stopRun       context.CancelFunc // ends leaseLoop and the queues
	submitCtx     context.Context    // context of submissions
	cancelSubmits context.CancelFunc
	running       sync.WaitGroup
}

// New returns a Submitter, which does nothing before Start.
func New(deps Deps, o Options) (*Submitter, error) {
	if deps.Store == nil || deps.Reporter == nil {
		return nil, errors.New("submit: Store and Reporter are required")
	}
	o.Poll = cmp.Or(o.Poll, time.Second)
	deps.Logger = cmp.Or(deps.Logger, slog.Default())
	if deps.Now == nil {
		deps.Now = time.Now
	}
	s := &Submitter{
		deps: deps, opts: o, log: deps.Logger, capacityFreed: make(chan struct{}, 1),
		leases: lease.NewSet(lease.Options[message.Ref]{Store: deps.Store, Gate: deps.Gate, Duration: leaseTime, Now: deps.Now, Log: deps.Logger}),
	}
	s.runCtx, s.stopRun = context.WithCancel(context.Background())
	s.submitCtx, s.cancelSubmits = context.WithCancel(context.Background())
	for _, r := range deps.Routes {
		s.queues = append(s.queues, newCarrierQueue(s, r))
	}
	s.outcomes = lease.NewWriter(lease.WriterOptions[pendingOutcome, struct{}]{
		Save: s.saveOutcomes, Batch: maxBatch, Log: s.log,
		OnSaved: func(batch []pendingOutcome, _ struct{}) {
			for i := range batch {
				if batch[i].correction {
					continue
				}
				s.finishParts(batch[i].item, 1)
				o := &batch[i].outcome
				if wait := o.RetryAt.Sub(deps.Now()); o.State == message.Pending && wait < s.opts.Poll {
					time.AfterFunc(wait, func() { relay.Notify(s.capacityFreed) }) // the retry is due before the next poll
				}
			}
		},
		// If the store refuses an outcome, the part stays in the state sending, as after a
		// crash.
		OnRefused: func(o *pendingOutcome, err error) time.Duration {
			s.log.Error("outcome refused by the store", "account", o.outcome.Account, "msg_id", o.outcome.ID, "outcome", o.outcome.State, "error", err)
			return 0
		},
	})
	return s, nil
}

// Lease returns the duration of the lease that dispatched messages must have.
func (s *Submitter) Lease() time.Duration { return leaseTime }

// Start begins to lease and submit messages.
func (s *Submitter) Start() {
	s.running.Go(s.leaseLoop)
	s.running.Go(func() { s.leases.RenewEvery(s.runCtx) })
	for _, q := range s.queues {
		s.running.Go(q.run)
	}
	s.outcomes.Start()
}

// FitsSevenBit reports whether the carrier of a number encodes a text of the GSM
// alphabet in 7 bits.
func (s *Submitter) FitsSevenBit(number, text string) bool {
	q := s.queueFor(number)
	return q == nil || q.route.FitsSevenBit == nil || q.route.FitsSevenBit(text)
}

// AcceptsOriginator reports whether the carrier of a number passes on an originator.
func (s *Submitter) AcceptsOriginator(number, originator string) bool {
	q := s.queueFor(number)
	return q == nil || q.route.AcceptsOriginator == nil || q.route.AcceptsOriginator(originator)
}

// Simulated reports whether the messages to a number are sent to the simulator.
func (s *Submitter) Simulated(number string) bool {
	q := s.queueFor(number)
	return q != nil && q.route.Name == message.Simulator
}

// WaitReason returns the reason why messages to a number wait at the moment; "" if they do not.
// The reason lacks the error of the connection, which only the health checks show to operators.
func (s *Submitter) WaitReason(number string) string {
	q := s.queueFor(number)
	if q != nil && q.boundElsewhere() {
		return fmt.Sprintf("waiting: another gateway holds the binds of carrier %q", q.route.Name)
	}
	if q == nil || q.canSend() {
		return ""
	}
	if !q.ready() {
		return fmt.Sprintf("waiting: carrier %q is not bound", q.route.Name)
	}
	return fmt.Sprintf("waiting: carrier %q throttles or cannot be reached", q.route.Name)
}

// Resume submits the parts that wait for a carrier after one of its binds was established.
func (s *Submitter) Resume(name string) {
	if q := s.queueNamed(name); q != nil {
		relay.Notify(q.notify)
	}
}

// Dispatch submits messages that were saved under a lease until end. Messages for which the
// queues have no capacity are released and leased later.
func (s *Submitter) Dispatch(messages []message.Message, end time.Time) {
	for i := range messages {
		if !s.accept(&messages[i], end) {
			s.leases.AddSpare(message.Lease{Ref: messages[i].Ref(), End: end})
		}
	}
}

// Stop stops submitting, waits for outstanding answers and saves their outcomes
// until ctx ends, and releases the remaining messages.
func (s *Submitter) Stop(ctx context.Context) error {
	s.mu.Lock()
	s.stopped = true
	s.mu.Unlock()
	s.stopRun()
	s.running.Wait()
	s.waitIdle(ctx, drainTimeout)
	s.cancelSubmits() // abandons unanswered submissions
	s.waitIdle(ctx, time.Second)
	var leases []message.Lease
	for _, q := range s.queues {
		q.mu.Lock()
		for _, item := range q.waiting {
			leases = append(leases, s.leases.Lease(&item.Hold))
		}
		q.waiting, q.waitingParts = nil, 0
		q.mu.Unlock()
	}
	s.leases.Release(ctx, leases, s.deps.Now())
	if n := s.outcomes.Stop(ctx); n > 0 {
		return fmt.Errorf("submit: stop: %d outcomes not saved", n)
	}
	return nil
}

// drainTimeout bounds the wait for outstanding answers at shutdown.
const drainTimeout = 5 * time.Second

// waitIdle waits until no parts are in flight, ctx ends or the timeout has passed.
func (s *Submitter) waitIdle(ctx context.Context, timeout time.Duration) {
	ctx, cancel := context.WithTimeout(ctx, timeout)
	defer cancel()
	for _, q := range s.queues {
		for q.snapshot().InFlight > 0 && relay.Wait(ctx, q.idle) {
		}
	}
}

// Stats are the numbers of a carrier's parts: those in its queue and in flight now, and the
// outcomes since the start.
type Stats struct {
	Carrier           string
	Waiting, InFlight int
	Accepted          int
	Rejected          int
	Throttled         int // throttled answers, and failures to reach the carrier
	Unknown           int
}

// Stats returns the Stats of each carrier, in the order of the routes.
func (s *Submitter) Stats() []Stats {
	stats := make([]Stats, len(s.queues))
	for i, q := range s.queues {
		stats[i] = q.snapshot()
	}
	return stats
}
