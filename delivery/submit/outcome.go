package submit

import (
	"cmp"
	"context"
	"sync/atomic"
	"time"

	"github.com/penstock/penstock/decoders/smpp"
	"github.com/penstock/penstock/delivery/carrier"
	"github.com/penstock/penstock/relay/message"
	"github.com/penstock/penstock/relay/tracing"
)

// submitPart submits a part to the carrier and queues its outcome for saving. The part
// stays in flight until its outcome is queued: Stop waits for the parts in flight and then
// saves what is queued.
func (q *carrierQueue) submitPart(item *item, part int) {
	conn := q.connect(q.worker.deps.Now())
	if conn == nil {
		lost := carrier.Outcome{Verdict: carrier.Later, Unsent: true, Reason: "no bind had room when the message was to be sent"}
		q.worker.outcomes.Add(pendingOutcome{item, q.outcome(item, part, lost), false})
		q.complete(item, 1, nil)
		return
	}
	var answers atomic.Int32
	span := q.span(item, part, conn)
	conn.Carrier.Submit(q.worker.submitCtx, item.submission(part), func(o carrier.Outcome) {
		if answers.Add(1) > 1 { // a late answer after Unknown
			q.worker.outcomes.Add(pendingOutcome{item, q.outcome(item, part, o), true})
			return
		}
		endSpan(span, &o)
		q.recordAnswer(&o)
		q.worker.outcomes.Add(pendingOutcome{item, q.outcome(item, part, o), false})
		q.complete(item, 1, conn)
	})
}

// recordAnswer counts an answer and adjusts the throttle to it.
func (q *carrierQueue) recordAnswer(o *carrier.Outcome) {
	now := q.worker.deps.Now()
	q.mu.Lock()
	defer q.mu.Unlock()
	switch {
	case o.Verdict == carrier.Later && o.Unsent: // the carrier has not answered
	case o.PauseQueue:
		q.stats.Throttled++
		q.throttle.slowDown(now, o.After)
	case o.Verdict == carrier.Unknown:
		q.stats.Unknown++
	default:
		q.throttle.speedUp()
	}
	switch o.Verdict {
	case carrier.Accepted:
		q.stats.Accepted++
	case carrier.Rejected:
		q.stats.Rejected++
	}
}

// outcome converts a carrier's outcome into the one that the store records.
func (q *carrierQueue) outcome(item *item, part int, o carrier.Outcome) message.Outcome {
	now := q.worker.deps.Now()
	out := message.Outcome{PartRef: item.ref(part), Carrier: q.route.Name, CarrierID: o.ID, Reason: o.Reason, At: now}
	switch o.Verdict {
	case carrier.Accepted:
		out.State = message.Accepted
	case carrier.Rejected:
		out.State, out.Refund = message.Rejected, o.Unsent
	case carrier.Unknown:
		out.State = message.Unknown
	default:
		q.retryOrReject(item, &out, o, now)
	}
	return out
}

// minRetryWait and maxRetryWait bound the wait before a message is retried.
const (
	minRetryWait = 5 * time.Second
	maxRetryWait = time.Hour
)

// retryOrReject schedules a retry of a part, or rejects it once GiveUp has passed
// since it was to be sent, or was resent.
func (q *carrierQueue) retryOrReject(item *item, out *message.Outcome, o carrier.Outcome, now time.Time) {
	out.State = message.Pending
	if o.PauseQueue || o.Unsent { // the queue waits, not the message
		out.Again = now.Add(max(time.Millisecond, q.pauseLeft(now)))
		return
	}
	waited := now.Sub(laterOf(item.msg.ScheduledFor, item.msg.Parts[out.Part].ResentAt))
	if waited >= q.worker.opts.GiveUp {
		out.State, out.Refund = message.Rejected, true
		out.Reason = "given up after " + q.worker.opts.GiveUp.String() + ": " + o.Reason
		return
	}
	out.Again = now.Add(max(minRetryWait, min(waited, maxRetryWait), o.After))
}

// pauseLeft returns how long the queue stays paused.
func (q *carrierQueue) pauseLeft(now time.Time) time.Duration {
	q.mu.Lock()
	defer q.mu.Unlock()
	return q.throttle.pausedUntil.Sub(now)
}

// span begins the span of a submission; nil if the message has no trace.
func (q *carrierQueue) span(item *item, part int, conn *connection) *tracing.Active {
	m := &item.msg
	if q.worker.deps.Tracer == nil || m.Trace == "" {
		return nil
	}
	span := q.worker.deps.Tracer.Continue(m.Trace, "submit", tracing.Client, time.Now())
	span.Set("penstock.message_id", item.ref(part).String())
	span.Set("penstock.account", m.Account.String())
	span.Set("penstock.carrier", q.route.Name)
	if conn.Name != "" {
		span.Set("penstock.bind", conn.Name)
	}
	return span
}

// endSpan ends the span of a submission with the carrier's first answer; nil is none.
func endSpan(span *tracing.Active, o *carrier.Outcome) {
	if span == nil {
		return
	}
	span.Set("penstock.carrier_id", o.ID)
	failed := ""
	if o.Verdict != carrier.Accepted {
		failed = cmp.Or(o.Cause, o.Reason)
	}
	span.End(time.Now(), failed)
}

// maxBatch is the largest number of outcomes saved at a time.
const maxBatch = 512

// pendingOutcome is an outcome that is not saved yet. A correction replaces an
// unknown outcome; it does not keep its item in memory.
type pendingOutcome struct {
	item       *item
	outcome    message.Outcome
	correction bool
}

// saveOutcomes binds the carriers' ids before it records the outcomes, so that a
// receipt always finds its part.
func (w *Worker) saveOutcomes(ctx context.Context, batch []pendingOutcome) (none struct{}, err error) {
	outcomes := make([]message.Outcome, len(batch))
	var bindings []message.Binding
	for i := range batch {
		outcomes[i] = batch[i].outcome
		bindings = append(bindings, w.bindingsOf(batch[i].item, &batch[i].outcome)...)
	}
	if len(bindings) > 0 {
		if err := w.deps.Reporter.Bind(ctx, bindings); err != nil {
			return none, err
		}
	}
	toReport, err := w.deps.Work.Settle(ctx, outcomes)
	if err != nil {
		return none, err
	}
	if err := w.deps.Reporter.SendReports(ctx, toReport); err != nil {
		w.log.Warn("cannot create delivery reports; trying again", "count", len(toReport), "error", err)
	}
	return none, nil
}

// bindingsOf returns the binding of the id that receipts name the part by: the
// carrier's id, or our reference if the carrier's answer was lost.
func (w *Worker) bindingsOf(item *item, o *message.Outcome) []message.Binding {
	q := w.queueNamed(o.Carrier)
	if q == nil || !q.route.ReceiptsByCarrierID {
		return nil
	}
	var id string
	switch {
	case o.State == message.Unknown:
		id = smpp.UnansweredID(smpp.ReferenceOf(o.PartRef.String()), item.msg.Destination)
	case o.CarrierID != "":
		id = smpp.CanonicalID(o.CarrierID)
	default:
		return nil
	}
	return []message.Binding{{Carrier: o.Carrier, IDs: []string{id}, Part: o.PartRef, Number: item.msg.Destination}}
}

func (w *Worker) queueNamed(carrier string) *carrierQueue {
	for _, q := range w.queues {
		if q.route.Name == carrier {
			return q
		}
	}
	return nil
}

func (w *Worker) outcomesSaved(batch []pendingOutcome, _ struct{}) {
	for i := range batch {
		if !batch[i].correction {
			w.partsDone(batch[i].item, 1)
		}
	}
}

// outcomeRefused drops an outcome that the store refuses: the part stays marked as
// being sent, as after a crash.
func (w *Worker) outcomeRefused(o *pendingOutcome, err error) time.Duration {
	w.log.Error("outcome refused by the store", "account", o.outcome.Account, "msg_id", o.outcome.ID, "outcome", o.outcome.State, "error", err)
	return 0
}
