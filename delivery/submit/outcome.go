package submit

import (
	"context"
	"slices"
	"time"

	"github.com/penstock/penstock/decoders/smpp"
	"github.com/penstock/penstock/delivery/carrier"
	"github.com/penstock/penstock/relay/message"
	"github.com/penstock/penstock/relay/tracing"
)

// recordResult counts a result and adjusts the throttle to it.
func (q *carrierQueue) recordResult(r *carrier.Result) {
	now := q.submitter.deps.Now()
	q.mu.Lock()
	defer q.mu.Unlock()
	switch {
	case r.Verdict == carrier.RetryLater && r.NotSubmitted: // not an answer from the carrier
	case r.PauseQueue:
		q.stats.Throttled++
		q.throttle.slowDown(now, r.RetryAfter)
	case r.Verdict == carrier.Unknown:
		q.stats.Unknown++
	default:
		q.throttle.speedUp()
	}
	switch r.Verdict {
	case carrier.Accepted:
		q.stats.Accepted++
	case carrier.Rejected:
		q.stats.Rejected++
	}
}

// outcomeOf converts a carrier's result into the outcome that the store records. A part that
// failed is retried until giveUpAfter has passed since its scheduled time or since it was
// resent; then it is rejected.
func (q *carrierQueue) outcomeOf(item *item, part int, r carrier.Result) message.Outcome {
	now := q.submitter.deps.Now()
	outcome := message.Outcome{PartRef: item.ref(part), Carrier: q.route.Name, CarrierID: r.ID, Reason: r.Reason, At: now}
	switch r.Verdict {
	case carrier.Accepted:
		outcome.State = message.Accepted
	case carrier.Rejected:
		outcome.State, outcome.Refund = message.Rejected, r.NotSubmitted
	case carrier.Unknown:
		outcome.State = message.Unknown
	default:
		outcome.State = message.Pending
		if r.PauseQueue || r.NotSubmitted { // the queue waits, not the message
			q.mu.Lock()
			pauseLeft := q.throttle.pausedUntil.Sub(now)
			q.mu.Unlock()
			outcome.RetryAt = now.Add(max(time.Millisecond, pauseLeft))
			break
		}
		waited := now.Sub(laterOf(item.msg.ScheduledFor, item.msg.Parts[part].ResentAt))
		outcome.RetryAt = now.Add(max(minRetryWait, min(waited, maxRetryWait), r.RetryAfter))
		if waited >= giveUpAfter {
			outcome.State, outcome.RetryAt, outcome.Refund = message.Rejected, time.Time{}, true
			outcome.Reason = "given up after " + giveUpAfter.String() + ": " + r.Reason
		}
	}
	return outcome
}

// minRetryWait and maxRetryWait bound the wait before a message is retried.
const (
	minRetryWait = 5 * time.Second
	maxRetryWait = time.Hour
)

// startSpan begins the span of a submission.
func (q *carrierQueue) startSpan(item *item, part int, conn *connection) *tracing.Active {
	span := q.submitter.deps.Tracer.Continue(item.msg.Trace, "submit", tracing.Client, time.Now())
	span.Set("penstock.message_id", item.ref(part).String())
	span.Set("penstock.account", item.Ref.Account.String())
	span.Set("penstock.carrier", q.route.Name)
	span.Set("penstock.bind", conn.Name)
	return span
}

// maxBatch is the largest number of outcomes saved at a time.
const maxBatch = 512

// pendingOutcome is an outcome that is not saved yet.
type pendingOutcome struct {
	item    *item
	outcome message.Outcome
	// correction means that the outcome replaces an unknown one. The part is not counted in
	// item.unfinished any more.
	correction bool
}

// saveOutcomes saves a batch of outcomes. It first saves the carriers' ids, so that a receipt
// always finds its part. lease.WriterOptions.Save requires the result, which is empty.
func (s *Submitter) saveOutcomes(ctx context.Context, batch []pendingOutcome) (result struct{}, err error) {
	outcomes := make([]message.Outcome, len(batch))
	var carrierIDs []message.CarrierID
	for i := range batch {
		// Receipts name the part by the carrier's id, or by our reference if the carrier's
		// answer was lost.
		o, destination := &batch[i].outcome, batch[i].item.msg.Destination
		outcomes[i] = *o
		var id string
		switch q := s.queueNamed(o.Carrier); {
		case q == nil || !q.route.ReceiptsByCarrierID:
		case o.State == message.Unknown:
			id = smpp.UnansweredID(smpp.ReferenceOf(o.PartRef.String()), destination)
		case o.CarrierID != "":
			id = smpp.CanonicalID(o.CarrierID)
		}
		if id != "" {
			carrierIDs = append(carrierIDs, message.CarrierID{Carrier: o.Carrier, ID: id, Part: o.PartRef, Number: destination})
		}
	}
	if len(carrierIDs) > 0 {
		if err := s.deps.Reporter.SaveCarrierIDs(ctx, carrierIDs); err != nil {
			return result, err
		}
	}
	toReport, err := s.deps.Store.Settle(ctx, outcomes)
	if err != nil {
		return result, err
	}
	if err := s.deps.Reporter.SendReports(ctx, toReport); err != nil {
		s.log.Warn("cannot create delivery reports; trying again", "count", len(toReport), "error", err)
	}
	return result, nil
}

func (s *Submitter) queueNamed(name string) *carrierQueue {
	i := slices.IndexFunc(s.queues, func(q *carrierQueue) bool { return q.route.Name == name })
	if i < 0 {
		return nil
	}
	return s.queues[i]
}
