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
	"github.com/penstock/penstock/delivery/email"
	"github.com/penstock/penstock/delivery/httpout"
	"github.com/penstock/penstock/relay"
	"github.com/penstock/penstock/relay/message"
	"github.com/penstock/penstock/relay/outbox"
	"github.com/penstock/penstock/relay/tracing"
)

// Deps are the transports and the source of signing secrets. HTTP and Mail are required.
type Deps struct {
	HTTP httpout.Doer
	// Mail is the SMTP client or the mail sink.
	Mail interface {
		Send(ctx context.Context, m outbox.Mail) (email.Result, error)
	}
	// Operator delivers messages to SIMs; if it is nil, these deliveries are dead.
	Operator interface {
		Deliver(ctx context.Context, d outbox.Delivery) (attempt.SIMResult, error)
	}
	// Messages sends the SMS of accounts; if it is nil, these deliveries are dead.
	Messages Messages
	// Simulated reports whether messages to a number go to a simulator; nil means that no
	// messages do.
	Simulated func(number string) bool
	// Secrets returns an account's webhook secrets (whsec_…), newest first. An account without
	// secrets gets unsigned requests; if Secrets is nil, no request is signed.
	Secrets func(ctx context.Context, acct relay.AccountID) ([]string, error)
	Now     func() time.Time
}

// Messages sends the SMS of accounts; *message.Service implements it.
type Messages interface {
	Text(text string, maxParts int) message.Body
	Send(ctx context.Context, o message.Order) (message.OrderResult, error)
}

// Worker makes single attempts. It is safe for concurrent use.
type Worker struct {
	deps    Deps
	keyring *keyring
}

// New returns a worker, or an error if HTTP or Mail is missing.
func New(deps Deps) (*Worker, error) {
	if deps.HTTP == nil || deps.Mail == nil {
		return nil, errors.New("worker: HTTP and Mail are required")
	}
	if deps.Now == nil {
		deps.Now = time.Now
	}
	keyring := &keyring{load: deps.Secrets, now: deps.Now, cache: make(map[relay.AccountID]cachedKeys)}
	return &Worker{deps: deps, keyring: keyring}, nil
}

// WithMessages returns the worker with a service that sends SMS, and with Simulated of Deps.
// The service is created after the queue, because the reports of messages are deliveries.
func (w *Worker) WithMessages(m Messages, simulated func(number string) bool) *Worker {
	worker := *w
	worker.deps.Messages, worker.deps.Simulated = m, simulated
	return &worker
}

// Send makes one attempt of a delivery and classifies the result. It returns a result even if
// ctx ends.
func (w *Worker) Send(ctx context.Context, d outbox.Delivery) attempt.Result {
	began := w.deps.Now()
	var r attempt.Result
	switch {
	case d.Request != nil:
		r = w.sendRequest(ctx, d, began)
	case d.Mail != nil:
		r = w.sendMail(ctx, *d.Mail)
	case d.SIM != nil && w.deps.Operator != nil:
		r = w.sendToSIM(ctx, d)
	case d.SMS != nil && w.deps.Messages != nil:
		r = w.sendSMS(ctx, d, began)
	default:
		r.Verdict = delivery.Classify(0, nil, delivery.Unsendable(errors.New("delivery: nothing to send")), began)
		r.Attempt.Error, r.Attempt.Reason = r.Verdict.Reason, r.Verdict.PublicReason()
	}
	r.Attempt.At, r.Attempt.Duration = began, w.deps.Now().Sub(began)
	return r
}

func (w *Worker) sendRequest(ctx context.Context, d outbox.Delivery, now time.Time) (r attempt.Result) {
	req, err := w.sign(ctx, d, now)
	var resp httpout.Response
	if parent := tracing.FromContext(ctx); parent != "" {
		req = withHeaders(req, map[string]string{tracing.Header: string(parent)})
	}
	if err == nil {
		resp, err = w.deps.HTTP.Do(ctx, req)
	}
	r.Verdict = delivery.Classify(resp.Status, resp.Header, err, w.deps.Now())
	r.Attempt.Status, r.Attempt.Response = resp.Status, resp.Excerpt()
	if err != nil {
		r.Attempt.Error, r.Attempt.Reason = r.Verdict.Reason, r.Verdict.PublicReason()
	}
	return r
}

// withHeaders returns the request with more headers. The headers of the delivery are not
// changed.
func withHeaders(req outbox.Request, extra map[string]string) outbox.Request {
	headers := make(map[string]string, len(req.Headers)+len(extra))
	maps.Copy(headers, req.Headers)
	maps.Copy(headers, extra)
	req.Headers = headers
	return req
}

// sign returns the request with the headers of Standard Webhooks. The headers have a signature
// if the account has a secret.
func (w *Worker) sign(ctx context.Context, d outbox.Delivery, now time.Time) (outbox.Request, error) {
	req := *d.Request
	keys, err := w.keyring.keysOf(ctx, d.Account)
	if err != nil {
		return req, err
	}
	return withHeaders(req, webhookHeaders(keys, d.ID, now, req.Body)), nil
}

// Preview returns the request that Send would send now.
func (w *Worker) Preview(ctx context.Context, d outbox.Delivery) (outbox.Request, error) {
	if d.Request == nil {
		return outbox.Request{}, errors.New("delivery: no request")
	}
	return w.sign(ctx, d, w.deps.Now())
}

func (w *Worker) sendToSIM(ctx context.Context, d outbox.Delivery) (r attempt.Result) {
	result, err := w.deps.Operator.Deliver(ctx, d)
	r.Verdict = delivery.Verdict{Class: delivery.Delivered}
	if err != nil {
		r.Verdict = delivery.Classify(0, nil, err, w.deps.Now())
		r.Attempt.Error, r.Attempt.Reason = r.Verdict.Reason, r.Verdict.PublicReason()
	}
	r.Simulated, r.Attempt.Response = result.Simulated, result.Response
	return r
}

func (w *Worker) sendMail(ctx context.Context, m outbox.Mail) (r attempt.Result) {
	result, err := w.deps.Mail.Send(ctx, m)
	r.Verdict = delivery.ClassifyMail(result.Status, result.Response, err)
	r.Simulated = result.Simulated
	r.Attempt.Status, r.Attempt.Response = result.Status, result.Response
	if err != nil {
		r.Attempt.Error, r.Attempt.Reason = r.Verdict.Reason, r.Verdict.PublicReason()
	}
	return r
}

const (
	// maxSMSParts bounds the parts, and so the cost, of an SMS of a rule.
	maxSMSParts = 10
	// keyRetention is the retention of a delivery's idempotency key.
	keyRetention = 30 * 24 * time.Hour
	// smsOrigin is the origin of the messages of rules.
	smsOrigin = "rule"
)

// sendSMS sends a message for the account. The message is charged, split into parts and queued
// like an order over REST. The delivery is delivered when the message is queued; later states
// are states of the message.
//
// Without credit, the message is retried until the account has credit, without using up an
// attempt.
func (w *Worker) sendSMS(ctx context.Context, d outbox.Delivery, now time.Time) (r attempt.Result) {
	// The idempotency key is the same until the delivery is recorded as delivered: a retry
	// after a lost response and a replay of a dead delivery send nothing twice. A replay of a
	// delivered delivery sends another message.
	delivered := 0
	for _, a := range d.Attempts {
		if a.Error == "" {
			delivered++
		}
	}
	sent, err := w.deps.Messages.Send(ctx, message.Order{
		Account: d.Account, Destinations: []string{d.SMS.To}, Originator: d.SMS.Originator,
		Body: w.deps.Messages.Text(d.SMS.Text, maxSMSParts), Origin: smsOrigin, Key: d.ID + " " + strconv.Itoa(delivered), KeyRetention: keyRetention,
	})
	fields := relay.FieldsOf(err)
	switch {
	case err == nil && len(sent.Messages) > 0:
		r.Attempt.Response = fmt.Sprintf("message %s, %d credits", sent.Messages[0].ID, sent.Cost)
	case len(fields["Idempotency-Key"]) > 0:
		// The earlier message was split differently, because another carrier served the number.
		r.Attempt.Response = "sent before"
	case relay.KindOf(err) == relay.KindNoCredit:
		// The delivery is retried after a tenth of its age, within bounds.
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

// noCredit is the same text for each attempt, because attempts with the same reason are not
// stored again.
const noCredit = "the account has too little credit for this message; the message is sent when there is enough"
