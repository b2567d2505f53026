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
	// maxSMSParts bounds what one SMS of a rule costs.
	maxSMSParts = 10
	// keepKey is how long a message is known that a delivery has sent.
	keepKey = 30 * 24 * time.Hour
	// smsOrigin is the interface of such messages.
	smsOrigin = "rule"
)

// sms has the account send a message: it is charged, cut into parts and queued as
// if it came over REST, and delivered means queued. What becomes of it after that
// is shown with the account's messages.
//
// A message without credit waits until there is some, and no attempt is used up.
func (w *Worker) sms(ctx context.Context, d outbox.Delivery, now time.Time) (r attempt.Result) {
	sent, err := w.deps.Messages.Send(ctx, message.Order{
		Account: d.Account, Destinations: []string{d.SMS.To}, Originator: d.SMS.Originator,
		Body: w.deps.Messages.Text(d.SMS.Text, maxSMSParts), Origin: smsOrigin, Key: smsKey(&d), KeepKey: keepKey,
	})
	switch {
	case err == nil && len(sent.Messages) > 0:
		r.Attempt.Response = fmt.Sprintf("message %s, %d credits", sent.Messages[0].ID, sent.Cost)
	case sentBefore(err):
		r.Attempt.Response = "sent before"
	case relay.KindOf(err) == relay.KindNoCredit:
		r.Verdict = delivery.Verdict{Class: delivery.Fault, Reason: noCredit, RetryAfter: creditWait(&d, now)}
	case relay.KindOf(err) == relay.KindInvalid:
		r.Verdict = delivery.Classify(0, nil, delivery.Unsendable(errors.New(reasons(err))), now)
	default:
		r.Verdict = delivery.Classify(0, nil, delivery.OwnFault(fmt.Errorf("sms: %w", err)), now)
	}
	if r.Verdict.Class == 0 {
		r.Verdict.Class = delivery.Delivered
		r.Simulated = w.deps.Simulated != nil && w.deps.Simulated(d.SMS.To)
	}
	r.Attempt.Error = r.Verdict.Reason
	return r
}

// noCredit is the same each time, so that a delivery that waits does not grow.
const noCredit = "the account has not enough credit for this message; it is sent when there is enough"

// creditWait is the time until it is tried again without credit: between 10 seconds
// and a quarter of an hour, the longer it has waited.
func creditWait(d *outbox.Delivery, now time.Time) time.Duration {
	return min(max(now.Sub(d.CreatedAt)/10, 10*time.Second), 15*time.Minute)
}

// smsKey is the idempotency key of a delivery's message. It is the same until the
// delivery is recorded as delivered: after an answer that was lost, and when a dead
// one is replayed, nothing is sent twice. An operator who replays one that was
// delivered asks for another message.
func smsKey(d *outbox.Delivery) string {
	delivered := 0
	for _, a := range d.Attempts {
		if a.Error == "" {
			delivered++
		}
	}
	return d.ID + " " + strconv.Itoa(delivered)
}

// sentBefore reports that the key was used for a message that was cut otherwise,
// since another carrier served the number then. A delivery never changes, so that it
// was this one.
func sentBefore(err error) bool {
	return len(relay.FieldsOf(err)["Idempotency-Key"]) > 0
}

// reasons joins the texts of an invalid order.
func reasons(err error) string {
	fields := relay.FieldsOf(err)
	var out []string
	for _, name := range slices.Sorted(maps.Keys(fields)) {
		out = append(out, fields[name]...)
	}
	return strings.Join(out, " ")
}
