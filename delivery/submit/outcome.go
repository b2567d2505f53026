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

// recordAnswer counts an answer and adjusts the throttle to it.
func (q *carrierQueue) recordAnswer(o *carrier.Outcome) {
	now := q.submitter.deps.Now()
	q.mu.Lock()
	defer q.mu.Unlock()
	switch {
	case o.Verdict == carrier.RetryLater && o.NotSubmitted: // not an answer from the carrier
	case o.PauseQueue:
		q.stats.Throttled++
		q.throttle.slowDown(now, o.RetryAfter)
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

// outcome converts a carrier's outcome into the outcome that the store records. A part that
// failed is retried until giveUpAfter has passed since its scheduled time or since it was
// resent; then it is rejected.
func (q *carrierQueue) outcome(item *item, part int, o carrier.Outcome) message.Outcome {
	now := q.submitter.deps.Now()
	result := message.Outcome{PartRef: item.ref(part), Carrier: q.route.Name, CarrierID: o.ID, Reason: o.Reason, At: now}
	switch o.Verdict {
	case carrier.Accepted:
		result.State = message.Accepted
	case carrier.Rejected:
		result.State, result.Refund = message.Rejected, o.NotSubmitted
	case carrier.Unknown:
		result.State = message.Unknown
	default:
		result.State = message.Pending
		if o.PauseQueue || o.NotSubmitted { // the queue waits, not the message
			q.mu.Lock()
			pauseLeft := q.throttle.pausedUntil.Sub(now)
			q.mu.Unlock()
			result.RetryAt = now.Add(max(time.Millisecond, pauseLeft))
			break
		}
		waited := now.Sub(laterOf(item.msg.ScheduledFor, item.msg.Parts[part].ResentAt))
		result.RetryAt = now.Add(max(minRetryWait, min(waited, maxRetryWait), o.RetryAfter))
		if waited >= giveUpAfter {
			result.State, result.RetryAt, result.Refund = message.Rejected, time.Time{}, true
			result.Reason = "given up after " + giveUpAfter.String() + ": " + o.Reason
		}
	}
	return result
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
// always finds its part. lease.Outcomes.Save requires the result, which is empty.
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
