package queue

import (
	"context"
	"fmt"
	"net/url"
	"strconv"
	"strings"
	"time"

	"github.com/penstock/penstock/delivery"
	"github.com/penstock/penstock/delivery/attempt"
	"github.com/penstock/penstock/relay/outbox"
	"github.com/penstock/penstock/relay/tracing"
)

// makeAttempt sends the delivery of an item in flight, unless a breaker parks it, and passes the
// outcome to the outcome writer. It skips an item whose lease has expired, because the
// database was unavailable, and every item while the gate is closed. The next process that
// leases a skipped delivery attempts it. A delivery whose record cannot be decrypted is dead
// until it is replayed. makeAttempt uses the queue's own context, because a sent request cannot
// be recalled.
func (q *Queue) makeAttempt(item *item) {
	if !q.leases.MayBegin(&item.Hold) {
		q.leases.Drop(item.Ref)
		return
	}
	d := &item.delivery
	o := outbox.Outcome{ID: d.ID, Account: d.Account, Endpoint: d.EndpointKey()}
	if d.Undecryptable {
		o.State, o.Reason = outbox.Dead, outbox.UndecryptableReason
		o.Attempt = outbox.Attempt{At: q.deps.Now(), Reason: o.Reason}
		q.count(o)
		q.deps.Logger.Error("delivery dead: cannot decrypt its record", "account", d.Account, "delivery_id", d.ID, "kind", string(d.Kind), "reason", o.Reason)
		q.deps.Observe(*d, o)
		q.outcomes.Add(o)
		return
	}
	// A delivery is parked at most until ParkedUntil.
	p, reason := permitAttempt, ""
	if d.ParkedUntil.IsZero() || q.deps.Now().Before(d.ParkedUntil) {
		p, reason = q.breakers.acquire(d)
	}
	if p == permitNone {
		o.State, o.Reason = d.State, parkedReason(d, reason)
		q.park(d, &o)
		q.outcomes.Add(o)
		return
	}
	ctx, cancel := context.WithTimeout(q.attemptCtx, attemptTimeout)
	defer cancel()
	span := q.startSpan(d)
	r := q.send(tracing.NewContext(ctx, span.Parent()), *d)
	q.breakers.record(d, p, r)
	o = q.outcomeOf(d, p, r)
	endSpan(span, &o)
	q.count(o)
	if o.State == outbox.Dead {
		q.deps.Logger.WarnContext(ctx, "delivery dead: it is not attempted again", "account", d.Account, "delivery_id", d.ID, "kind", string(d.Kind), "target", redactedTarget(d), "reason", o.Reason, "error", o.Attempt.Error)
	}
	q.deps.Observe(*d, o)
	if o.Uncounted && o.Reason == d.Reason {
		// Internal faults and probes may repeat without limit, and the stored attempts of the
		// delivery must not grow with them.
		o.Attempt = outbox.Attempt{}
	}
	q.outcomes.Add(o)
}

// endpointFails begins the reason of a parked delivery without an attempt of its own.
const endpointFails = "its endpoint fails: "

// parkedReason returns the reason of a delivery that is being parked: that of its last attempt, so
// that a probe that fails again for the same reason is not stored again, else that of the breaker.
func parkedReason(d *outbox.Delivery, breakerReason string) string {
	if d.Reason == "" || strings.HasPrefix(d.Reason, endpointFails) {
		return endpointFails + breakerReason
	}
	return d.Reason
}

func (q *Queue) park(d *outbox.Delivery, o *outbox.Outcome) {
	o.Uncounted, o.NextAttemptAt = true, time.Time{}
	o.ParkedUntil = d.ParkedUntil
	if o.ParkedUntil.IsZero() {
		o.ParkedUntil = q.deps.Now().Add(q.deps.Schedule.Length())
	}
}

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
	return q.attempter.Send(ctx, d)
}

func (q *Queue) outcomeOf(d *outbox.Delivery, p permit, r attempt.Result) outbox.Outcome {
	now := q.deps.Now()
	o := outbox.Outcome{ID: d.ID, Account: d.Account, Endpoint: d.EndpointKey(), Attempt: r.Attempt, Reason: r.Verdict.PublicReason()}
	switch r.Verdict.Class {
	case delivery.Delivered:
		o.State = outbox.Delivered
		if r.Simulated {
			o.State = outbox.Simulated
		}
	case delivery.Dead:
		o.State = outbox.Dead
	case delivery.Retry:
		o.State = outbox.Retrying
		wait, ok := q.deps.Schedule.Next(d.Tries+1, r.Verdict.RetryAfter, q.deps.Rand())
		switch {
		case p == permitProbe:
			q.park(d, &o)
		case ok:
			o.NextAttemptAt = now.Add(wait)
		default:
			o.State, o.Reason = outbox.Dead, fmt.Sprintf("no attempts left after %d: %s", d.Tries+1, o.Reason)
		}
	default:
		o.State, o.Uncounted = outbox.Retrying, true
		wait := r.Verdict.RetryAfter
		if q.attemptCtx.Err() == nil { // after a shutdown the delivery is due at the next start
			jitter := 0.8 + 0.4*q.deps.Rand()
			wait = max(time.Duration(float64(faultDelay)*jitter), wait)
		}
		o.NextAttemptAt = now.Add(wait)
	}
	return o
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
	// maxBatch is the maximum number of outcomes that are saved at a time; refusedDelay is the
	// delay before an outcome that the store refused is saved again.
	maxBatch     = 256
	refusedDelay = 10 * time.Second
)

// startSpan begins the span of an attempt. It returns nil if the delivery has no trace.
func (q *Queue) startSpan(d *outbox.Delivery) *tracing.Active {
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

func endSpan(span *tracing.Active, o *outbox.Outcome) {
	if span == nil {
		return
	}
	span.Set("penstock.state", string(o.State))
	if o.Attempt.Status > 0 {
		span.Set("http.response.status_code", strconv.Itoa(o.Attempt.Status))
	}
	failure := ""
	if o.State != outbox.Delivered && o.State != outbox.Simulated {
		failure = o.Reason
	}
	span.End(time.Now(), failure)
}
