package queue

import (
	"context"
	"fmt"
	"time"

	"github.com/penstock/penstock/delivery"
	"github.com/penstock/penstock/delivery/worker"
	"github.com/penstock/penstock/relay/outbox"
)

// runHeld makes the attempt of an item that is in flight. One whose lease has
// run out meanwhile (Redis was away) is left alone: it is due for whoever
// leases it next.
func (q *Queue) runHeld(it *item) {
	if q.flight.lapsed(it) {
		return
	}
	q.attempt(it)
}

// attempt sends, unless a breaker holds the delivery, and hands the outcome to
// the book. It uses the queue's own context: what was sent was sent.
func (q *Queue) attempt(it *item) {
	p, why := pass, ""
	if !q.heldEnough(&it.d) {
		p, why = q.breakers.enter(&it.d)
	}
	if p == hold {
		q.book.add(q.waiting(&it.d, why))
		return
	}
	ctx, cancel := context.WithTimeout(q.life, q.opts.AttemptTimeout)
	defer cancel()
	r := q.send(ctx, it.d)
	q.breakers.leave(&it.d, p, r)
	o := q.judge(&it.d, p, r)
	q.count(o)
	q.deps.Observe(it.d, o)
	q.book.add(o)
}

// heldEnough reports whether no breaker may hold a delivery any more. From when
// one first did they may for as long as the schedule takes; then it makes the
// attempts it has left, so that it ends, with all of them made.
func (q *Queue) heldEnough(d *outbox.Delivery) bool {
	return !d.HeldUntil.IsZero() && !q.deps.Now().Before(d.HeldUntil)
}

// waiting is the outcome of a delivery that a breaker holds.
func (q *Queue) waiting(d *outbox.Delivery, why string) outbox.Outcome {
	o := outbox.Outcome{ID: d.ID, Account: d.Account, Endpoint: d.Lane(), State: d.State, Reason: "its endpoint fails: " + why}
	q.wait(d, &o)
	return o
}

// wait lets a delivery wait for its endpoint's breaker.
func (q *Queue) wait(d *outbox.Delivery, o *outbox.Outcome) {
	o.Uncounted, o.NextAttemptAt = true, time.Time{}
	o.HeldUntil = d.HeldUntil
	if o.HeldUntil.IsZero() {
		o.HeldUntil = q.deps.Now().Add(q.deps.Schedule.Length())
	}
}

// send turns a panic of a sender into a fault of our own.
func (q *Queue) send(ctx context.Context, d outbox.Delivery) (r worker.Result) {
	began := q.deps.Now()
	defer func() {
		if p := recover(); p != nil {
			q.deps.Logger.ErrorContext(ctx, "sender panicked", "account", d.Account, "delivery_id", d.ID, "error", p)
			r = worker.Result{
				Attempt: outbox.Attempt{At: began, Error: "internal error"},
				Verdict: delivery.Verdict{Class: delivery.Fault, Reason: "internal error"},
			}
		}
	}()
	return q.deps.Send.Send(ctx, d)
}

// judge decides where a delivery stands after an attempt.
func (q *Queue) judge(d *outbox.Delivery, p passage, r worker.Result) outbox.Outcome {
	o := outbox.Outcome{ID: d.ID, Account: d.Account, Endpoint: d.Lane(), Attempt: r.Attempt, Reason: r.Verdict.Reason}
	switch r.Verdict.Class {
	case delivery.Delivered:
		o.State = outbox.Delivered
		if r.Simulated {
			o.State = outbox.Simulated
		}
	case delivery.Dead:
		o.State = outbox.Dead
	case delivery.Retry:
		q.judgeRetry(d, p, r, &o)
	default:
		o.State, o.Uncounted = outbox.Retrying, true
		o.NextAttemptAt = q.deps.Now().Add(q.faultDelay())
	}
	return o
}

func (q *Queue) judgeRetry(d *outbox.Delivery, p passage, r worker.Result, o *outbox.Outcome) {
	wait, ok := q.deps.Schedule.Next(d.Tries+1, r.Verdict.RetryAfter, q.deps.Rand())
	switch {
	case p == probe:
		o.State = outbox.Retrying
		q.wait(d, o)
	case !ok:
		o.State = outbox.Dead
		o.Reason = fmt.Sprintf("no attempt left after %d: %s", d.Tries+1, r.Verdict.Reason)
	default:
		o.State = outbox.Retrying
		o.NextAttemptAt = q.deps.Now().Add(wait)
	}
}

// faultDelay spreads the attempts after a fault of our own by ±20 %. What a
// shutdown broke off is due at once, for the next start.
func (q *Queue) faultDelay() time.Duration {
	if q.life.Err() != nil {
		return 0
	}
	return time.Duration(float64(q.opts.FaultDelay) * (0.8 + 0.4*q.deps.Rand()))
}

func (q *Queue) count(o outbox.Outcome) {
	switch {
	case !o.HeldUntil.IsZero(): // a probe, which the breakers count
	case o.Uncounted:
		q.faults.Add(1)
	case o.State == outbox.Retrying:
		q.retried.Add(1)
	case o.State == outbox.Dead:
		q.dead.Add(1)
	default:
		q.delivered.Add(1)
	}
}
