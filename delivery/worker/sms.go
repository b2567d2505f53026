package worker

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/penstock/penstock/delivery"
	"github.com/penstock/penstock/delivery/attempt"
	"github.com/penstock/penstock/relay"
	"github.com/penstock/penstock/relay/message"
	"github.com/penstock/penstock/relay/outbox"
)

const (
	// maxSMSParts bounds the parts, and so the cost, of an SMS of a rule.
	maxSMSParts = 10
	// keepKey is the retention of a delivery's idempotency key.
	keepKey = 30 * 24 * time.Hour
	// smsOrigin is the origin of these messages.
	smsOrigin = "rule"
)

// sms sends a message for the account: it is charged, split into parts and queued like
// an order over REST, and delivered means queued. Its further states are those of the
// account's message.
//
// A message without credit is retried until there is credit, and uses up no attempt.
func (w *Worker) sms(ctx context.Context, d outbox.Delivery, now time.Time) (r attempt.Result) {
	// The idempotency key is the same until the delivery is recorded as delivered: a retry
	// after a lost response and a replay of a dead delivery send nothing twice. A replay of a
	// delivered one sends another message.
	delivered := 0
	for _, a := range d.Attempts {
		if a.Error == "" {
			delivered++
		}
	}
	sent, err := w.deps.Messages.Send(ctx, message.Order{
		Account: d.Account, Destinations: []string{d.SMS.To}, Originator: d.SMS.Originator,
		Body: w.deps.Messages.Text(d.SMS.Text, maxSMSParts), Origin: smsOrigin, Key: d.ID + " " + strconv.Itoa(delivered), KeepKey: keepKey,
	})
	fields := relay.FieldsOf(err)
	switch {
	case err == nil && len(sent.Messages) > 0:
		r.Attempt.Response = fmt.Sprintf("message %s, %d credits", sent.Messages[0].ID, sent.Cost)
	case len(fields["Idempotency-Key"]) > 0:
		// The message was split otherwise, because another carrier served the number then.
		r.Attempt.Response = "sent before"
	case relay.KindOf(err) == relay.KindNoCredit:
		// It is retried after a tenth of the delivery's age.
		wait := min(max(now.Sub(d.CreatedAt)/10, 10*time.Second), 15*time.Minute)
		r.Verdict = delivery.Verdict{Class: delivery.Fault, Reason: noCredit, RetryAfter: wait}
	case relay.KindOf(err) == relay.KindInvalid:
		var reasons []string
		for _, name := range slices.Sorted(maps.Keys(fields)) {
			reasons = append(reasons, fields[name]...)
		}
		r.Verdict = delivery.Classify(0, nil, delivery.Unsendable(errors.New(strings.Join(reasons, " "))), now)
	default:
		r.Verdict = delivery.Classify(0, nil, delivery.OwnFault(fmt.Errorf("sms: %w", err)), now)
	}
	if r.Verdict.Class == 0 {
		r.Verdict.Class = delivery.Delivered
		r.Simulated = w.deps.Simulated != nil && w.deps.Simulated(d.SMS.To)
	}
	r.Attempt.Error, r.Attempt.Reason = r.Verdict.Reason, r.Verdict.PublicReason()
	return r
}

// noCredit is the same for each attempt, so that a waiting delivery does not grow.
const noCredit = "the account has not enough credit for this message; it is sent when there is enough"
