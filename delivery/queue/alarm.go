package queue

import (
	"context"
	"encoding/json"
	"errors"
	"time"

	"github.com/hibiken/asynq"

	"github.com/penstock/penstock/relay"
	"github.com/penstock/penstock/relay/account"
	"github.com/penstock/penstock/relay/outbox"
)

// taskType is the type of all our asynq tasks.
const taskType = "delivery"

// alarm is when to look at a delivery again; zero is now.
type alarm struct {
	ref outbox.Ref
	at  time.Time
}

// payload is all that an asynq task carries: its heartbeat rewrites it again
// and again.
type payload struct {
	Account account.ID `json:"a"`
	ID      string     `json:"id"`
}

// later is what the handler returns to be called again; IsFailure never sees a
// failure in it.
type later time.Duration

func (later) Error() string { return "waits" }

// newServer makes one asynq server. It never counts, so it never archives.
func (q *Queue) newServer() *asynq.Server {
	return asynq.NewServer(q.deps.Redis, asynq.Config{
		Concurrency:              q.opts.Tasks,
		Queues:                   map[string]int{q.opts.Name: 1},
		RetryDelayFunc:           retryDelay,
		IsFailure:                func(error) bool { return false },
		TaskCheckInterval:        q.opts.Poll,
		DelayedTaskCheckInterval: q.opts.Poll,
		// Attempts end with the queue's own context; this is only a net below it.
		ShutdownTimeout: q.opts.AttemptTimeout + 10*time.Second,
		Logger:          newAsynqLog(q.deps.Logger, q.deps.Now),
		LogLevel:        asynq.WarnLevel,
	})
}

// retryDelay is 1 s for errors that are not ours, for example a lease of
// asynq's that ran out.
func retryDelay(_ int, err error, _ *asynq.Task) time.Duration {
	if wait, ok := errors.AsType[later](err); ok {
		return max(0, time.Duration(wait))
	}
	return time.Second
}

// set makes the asynq task of a delivery. One that exists already is fine: the
// record stays due, and the reconciler sees to it that it is looked at.
func (q *Queue) set(ctx context.Context, a alarm) (existed bool, err error) {
	body, err := json.Marshal(payload{a.ref.Account, a.ref.ID})
	if err != nil {
		return false, err
	}
	opts := []asynq.Option{
		asynq.Queue(q.opts.Name), asynq.TaskID(a.ref.ID), asynq.MaxRetry(1 << 30),
		// asynq reads times in whole seconds; below 1 s it would take 30 minutes.
		asynq.Timeout((q.opts.AttemptTimeout + 30*time.Second).Truncate(time.Second)),
	}
	if a.at.After(q.deps.Now()) {
		opts = append(opts, asynq.ProcessAt(a.at))
	}
	_, err = q.client.EnqueueContext(ctx, asynq.NewTask(taskType, body), opts...)
	if errors.Is(err, asynq.ErrTaskIDConflict) {
		return true, nil
	}
	return false, err
}

// wake passes on the retries among outcomes that were just saved, and the
// deliveries whose turn has come. When there are too many at a time the
// reconciler picks them up as they come due.
func (q *Queue) wake(saved []outbox.Outcome, turns []outbox.Ref) {
	for _, ref := range turns {
		q.want(alarm{ref: ref})
	}
	for i := range saved {
		if o := &saved[i]; !o.NextAttemptAt.IsZero() {
			q.want(alarm{outbox.Ref{Account: o.Account, ID: o.ID}, o.NextAttemptAt})
		}
	}
}

func (q *Queue) want(a alarm) {
	select {
	case q.wanted <- a:
	default:
	}
}

func (q *Queue) enqueueLoop() {
	for a := range q.wanted {
		ctx, cancel := context.WithTimeout(q.life, 5*time.Second)
		if err := q.heed(ctx, a); err != nil && q.life.Err() == nil {
			q.deps.Logger.Debug("retry is left to the reconciler", "delivery_id", a.ref.ID, "error", err)
		}
		cancel()
	}
}

// heed makes the task of an alarm, or attempts at once what is due now.
func (q *Queue) heed(ctx context.Context, a alarm) error {
	if !a.at.IsZero() {
		_, err := q.set(ctx, a)
		return err
	}
	if !q.begin(a.ref.ID) {
		return nil // if it is still due after that, the reconciler comes again
	}
	defer q.flight.told(a.ref.ID)
	now := q.deps.Now()
	d, ok, err := q.deps.Store.Lease(ctx, a.ref.Account, a.ref.ID, now, now.Add(q.opts.Lease))
	if err != nil || !ok {
		return err
	}
	// What handOver returns is for asynq; what found no place comes due again.
	return q.handOver(&item{d: d, lease: now.Add(q.opts.Lease)})
}

// begin reports whether a delivery's lease may be asked for until the flight is
// told. What this process has sent, or is sending, may look due: to a store that
// did late, and twice, what it was asked for in time. An attempt is in the book
// before it leaves the flight, so the book is looked at last.
func (q *Queue) begin(id string) bool {
	if !q.flight.ask(id) {
		return false
	}
	if q.book.has(id) {
		q.flight.told(id)
		return false
	}
	return true
}

// process is what asynq calls: it looks at the record and has it attempted if it
// is due. The task ends with that: what must be tried again gets another, so
// that an endpoint that hangs keeps none of asynq's workers.
func (q *Queue) process(ctx context.Context, t *asynq.Task) error {
	var p payload
	if err := json.Unmarshal(t.Payload(), &p); err != nil {
		q.deps.Logger.ErrorContext(ctx, "task is not ours", "error", err)
		return nil
	}
	ref := outbox.Ref{Account: p.Account, ID: p.ID}
	if !q.begin(ref.ID) {
		return later(time.Second)
	}
	defer q.flight.told(ref.ID)
	for {
		now := q.deps.Now()
		d, ok, err := q.deps.Store.Lease(ctx, ref.Account, ref.ID, now, now.Add(q.opts.Lease))
		switch {
		case relay.KindOf(err) == relay.KindNotFound || err == nil && (d.State.Ended() || d.Waits != ""):
			return nil
		case err != nil:
			return err
		case ok:
			return q.handOver(&item{d: d, lease: now.Add(q.opts.Lease)})
		}
		// asynq knows whole seconds only and calls up to one too early.
		wait := d.NextAttemptAt.Sub(now)
		if wait > time.Second || !sleep(ctx, q.life, wait) {
			return later(wait)
		}
	}
}

// sleep waits; false if a context ended before.
func sleep(a, b context.Context, wait time.Duration) bool {
	t := time.NewTimer(wait)
	defer t.Stop()
	select {
	case <-t.C:
		return true
	case <-a.Done():
	case <-b.Done():
	}
	return false
}

// handOver has a leased delivery attempted if its endpoint has room; else it is
// put off, so that it does not stand in the way of others that are due.
func (q *Queue) handOver(it *item) error {
	switch q.flight.admit(it) {
	case full:
		wait := q.flight.later(&it.d)
		q.giveBack([]outbox.Ref{it.ref()}, q.deps.Now().Add(wait))
		return later(wait)
	case refused:
		q.giveBack([]outbox.Ref{it.ref()}, q.deps.Now())
		return later(0)
	}
	return nil
}
