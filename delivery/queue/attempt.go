package queue

import (
	"context"
	"fmt"
	"net/url"
	"strconv"
	"time"

	"github.com/penstock/penstock/delivery"
	"github.com/penstock/penstock/delivery/attempt"
	"github.com/penstock/penstock/relay/outbox"
	"github.com/penstock/penstock/relay/tracing"
)

// attemptLeased attempts an item in flight. An item whose lease has expired,
// because the database was unavailable, is skipped, and so is each while the gate is
// closed: the next process that leases due deliveries attempts it.
func (q *Queue) attemptLeased(item *item) {
	if !q.leases.MayBegin(&item.Hold) {
		q.leases.Drop(item.Ref)
		return
	}
	q.attempt(item)
}

// attempt sends the delivery, unless a breaker parks it, and passes the outcome
// to the outcome writer. It uses the queue's own context, because a sent request
// cannot be recalled.
func (q *Queue) attempt(item *item) {
	p, reason, d := permitAttempt, "", &item.delivery
	if d.Unopened {
		q.refuseUnopened(d)
		return
	}
	if !q.parkExpired(d) {
		p, reason = q.breakers.acquire(d)
	}
	if p == permitNone {
		q.outcomes.Add(q.parkedOutcome(d, reason))
		return
	}
	ctx, cancel := context.WithTimeout(q.attemptCtx, q.opts.AttemptTimeout)
	defer cancel()
	span := q.span(d)
	r := q.send(tracing.NewContext(ctx, span.Parent()), *d)
	q.breakers.record(d, p, r)
	o := q.classify(d, p, r)
	endSpan(span, &o)
	q.count(o)
	if o.State == outbox.Dead {
		q.deps.Logger.WarnContext(ctx, "delivery dead: it is not attempted again", "account", d.Account, "delivery_id", d.ID, "kind", string(d.Kind), "target", redactedTarget(d), "reason", o.Reason, "error", o.Attempt.Error)
	}
	q.deps.Observe(*d, o)
	if o.Uncounted && o.Reason == d.Reason {
		// Our own faults and the probes of breakers may repeat without end: the attempts
		// that a delivery keeps would grow with them.
		o.Attempt = outbox.Attempt{}
	}
	q.outcomes.Add(o)
}

// refuseUnopened ends a delivery that cannot be attempted without what is sealed of its
// record. A replay attempts it once that opens.
func (q *Queue) refuseUnopened(d *outbox.Delivery) {
	o := outbox.Outcome{
		ID: d.ID, Account: d.Account, Endpoint: d.EndpointName(), State: outbox.Dead, Reason: outbox.UnopenedReason,
		Attempt: outbox.Attempt{At: q.deps.Now(), Reason: outbox.UnopenedReason},
	}
	q.count(o)
	q.deps.Logger.Error("delivery dead: its record does not open", "account", d.Account, "delivery_id", d.ID, "kind", string(d.Kind), "reason", o.Reason)
	q.deps.Observe(*d, o)
	q.outcomes.Add(o)
}

// parkExpired reports whether breakers have held a delivery for as long as they may.
func (q *Queue) parkExpired(d *outbox.Delivery) bool {
	return !d.ParkedUntil.IsZero() && !q.deps.Now().Before(d.ParkedUntil)
}

// parkedOutcome returns the outcome of a delivery that a breaker parks.
func (q *Queue) parkedOutcome(d *outbox.Delivery, reason string) outbox.Outcome {
	o := outbox.Outcome{ID: d.ID, Account: d.Account, Endpoint: d.EndpointName(), State: d.State, Reason: "its endpoint fails: " + reason}
	q.park(d, &o)
	return o
}

// park makes an outcome wait for the endpoint's breaker.
func (q *Queue) park(d *outbox.Delivery, o *outbox.Outcome) {
	o.Uncounted, o.NextAttemptAt = true, time.Time{}
	o.ParkedUntil = d.ParkedUntil
	if o.ParkedUntil.IsZero() {
		o.ParkedUntil = q.deps.Now().Add(q.deps.Schedule.Length())
	}
}

// send makes the attempt, and converts a panic of the sender into an internal
// fault.
func (q *Queue) send(ctx context.Context, d outbox.Delivery) (r attempt.Result) {
	began := q.deps.Now()
	defer func() {
		if p := recover(); p != nil {
			q.deps.Logger.ErrorContext(ctx, "sender panicked", "account", d.Account, "delivery_id", d.ID, "error", p)
			r = attempt.Result{
				Attempt: outbox.Attempt{At: began, Error: "internal error"},
				Verdict: delivery.Verdict{Class: delivery.Fault, Reason: "internal error"},
			}
		}
	}()
	return q.sender.Send(ctx, d)
}

// classify converts the result of an attempt into an outcome.
func (q *Queue) classify(d *outbox.Delivery, p permit, r attempt.Result) outbox.Outcome {
	o := outbox.Outcome{ID: d.ID, Account: d.Account, Endpoint: d.EndpointName(), Attempt: r.Attempt, Reason: r.Verdict.PublicReason()}
	switch r.Verdict.Class {
	case delivery.Delivered:
		o.State = outbox.Delivered
		if r.Simulated {
			o.State = outbox.Simulated
		}
	case delivery.Dead:
		o.State = outbox.Dead
	case delivery.Retry:
		q.classifyRetry(d, p, r, &o)
	default:
		o.State, o.Uncounted = outbox.Retrying, true
		o.NextAttemptAt = q.deps.Now().Add(max(q.faultDelay(), r.Verdict.RetryAfter))
	}
	return o
}

func (q *Queue) classifyRetry(d *outbox.Delivery, p permit, r attempt.Result, o *outbox.Outcome) {
	wait, ok := q.deps.Schedule.Next(d.Tries+1, r.Verdict.RetryAfter, q.deps.Rand())
	switch {
	case p == permitProbe:
		o.State = outbox.Retrying
		q.park(d, o)
	case !ok:
		o.State = outbox.Dead
		o.Reason = fmt.Sprintf("no attempt left after %d: %s", d.Tries+1, r.Verdict.PublicReason())
	default:
		o.State = outbox.Retrying
		o.NextAttemptAt = q.deps.Now().Add(wait)
	}
}

// faultDelay returns the delay after an internal fault, with a jitter of ±20 %.
// An attempt that a shutdown interrupted is due at once, for the next start.
func (q *Queue) faultDelay() time.Duration {
	if q.attemptCtx.Err() != nil {
		return 0
	}
	return time.Duration(float64(q.opts.FaultDelay) * (0.8 + 0.4*q.deps.Rand()))
}

func (q *Queue) count(o outbox.Outcome) {
	switch {
	case !o.ParkedUntil.IsZero(): // a probe, counted by the breakers
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

const (
	// maxBatch is the largest number of outcomes saved at a time; refusedDelay is
	// the wait before one that the store refused is saved again.
	maxBatch     = 256
	refusedDelay = 10 * time.Second
)

func (q *Queue) outcomeRefused(o *outbox.Outcome, err error) time.Duration {
	q.deps.Logger.Error("outcome refused by the store", "account", o.Account, "delivery_id", o.ID, "error", err)
	return refusedDelay
}

// span begins the span of an attempt; nil if the delivery has no trace.
func (q *Queue) span(d *outbox.Delivery) *tracing.Active {
	if q.deps.Tracer == nil || d.Trace == "" {
		return nil
	}
	span := q.deps.Tracer.Continue(d.Trace, "deliver "+string(d.Kind), tracing.Client, time.Now())
	span.Set("penstock.delivery_id", d.ID)
	span.Set("penstock.message_id", d.MessageID)
	span.Set("penstock.account", d.Account.String())
	span.Set("penstock.relay", d.Relay)
	span.Set("penstock.attempt", strconv.Itoa(d.Tries+1))
	if d.Request != nil {
		if u, err := url.Parse(d.Request.URL); err == nil {
			span.Set("server.address", u.Hostname())
		}
	}
	return span
}

// endSpan ends the span of an attempt; nil is none.
func endSpan(span *tracing.Active, o *outbox.Outcome) {
	if span == nil {
		return
	}
	span.Set("penstock.state", string(o.State))
	if o.Attempt.Status > 0 {
		span.Set("http.response.status_code", strconv.Itoa(o.Attempt.Status))
	}
	failed := ""
	if o.State != outbox.Delivered && o.State != outbox.Simulated {
		failed = o.Reason
	}
	span.End(time.Now(), failed)
}
