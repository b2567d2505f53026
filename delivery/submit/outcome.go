package submit

import (
	"cmp"
	"context"
	"slices"
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

// outcome converts a carrier's outcome into the one that the store records. A part that
// failed is retried, or rejected once giveUpAfter has passed since it was to be sent, or was
// resent.
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
		out.State = message.Pending
		if o.PauseQueue || o.Unsent { // the queue waits, not the message
			q.mu.Lock()
			pauseLeft := q.throttle.pausedUntil.Sub(now)
			q.mu.Unlock()
			out.RetryAt = now.Add(max(time.Millisecond, pauseLeft))
			break
		}
		waited := now.Sub(laterOf(item.msg.ScheduledFor, item.msg.Parts[part].ResentAt))
		out.RetryAt = now.Add(max(minRetryWait, min(waited, maxRetryWait), o.After))
		if waited >= giveUpAfter {
			out.State, out.RetryAt, out.Refund = message.Rejected, time.Time{}, true
			out.Reason = "given up after " + giveUpAfter.String() + ": " + o.Reason
		}
	}
	return out
}

// minRetryWait and maxRetryWait bound the wait before a message is retried.
const (
	minRetryWait = 5 * time.Second
	maxRetryWait = time.Hour
)

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

// saveOutcomes saves the carriers' ids before it records the outcomes, so that a
// receipt always finds its part.
func (w *Worker) saveOutcomes(ctx context.Context, batch []pendingOutcome) (none struct{}, err error) {
	outcomes := make([]message.Outcome, len(batch))
	var carrierIDs []message.CarrierIDs
	for i := range batch {
		// Receipts name the part by the carrier's id, or by our reference if the carrier's
		// answer was lost.
		o, destination := &batch[i].outcome, batch[i].item.msg.Destination
		outcomes[i] = *o
		var id string
		switch q := w.queueNamed(o.Carrier); {
		case q == nil || !q.route.ReceiptsByCarrierID:
		case o.State == message.Unknown:
			id = smpp.UnansweredID(smpp.ReferenceOf(o.PartRef.String()), destination)
		case o.CarrierID != "":
			id = smpp.CanonicalID(o.CarrierID)
		}
		if id != "" {
			carrierIDs = append(carrierIDs, message.CarrierIDs{Carrier: o.Carrier, IDs: []string{id}, Part: o.PartRef, Number: destination})
		}
	}
	if len(carrierIDs) > 0 {
		if err := w.deps.Reporter.SaveCarrierIDs(ctx, carrierIDs); err != nil {
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

func (w *Worker) queueNamed(carrier string) *carrierQueue {
	i := slices.IndexFunc(w.queues, func(q *carrierQueue) bool { return q.route.Name == carrier })
	if i < 0 {
		return nil
	}
	return w.queues[i]
}
