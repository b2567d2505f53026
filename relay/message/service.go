package message

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"sync/atomic"
	"time"

	"github.com/penstock/penstock/decoders/sms"
	"github.com/penstock/penstock/relay"
	"github.com/penstock/penstock/relay/credit"
	"github.com/penstock/penstock/relay/tracing"
)

// Submitter submits messages to carriers and reports the capabilities of the carrier that
// serves a number. *submit.Submitter implements it.
type Submitter interface {
	// Lease returns the duration of the lease that dispatched messages must have.
	Lease() time.Duration
	// Dispatch submits messages that were saved under a lease until end. It does not
	// block: messages beyond its capacity are released and leased again by the next poll.
	Dispatch(messages []Message, end time.Time)
	// FitsSevenBit reports whether the carrier encodes a text of the GSM alphabet in 7
	// bits; otherwise the text is sent as UCS-2.
	FitsSevenBit(number, text string) bool
	// AcceptsOriginator reports whether the carrier passes on a valid originator.
	AcceptsOriginator(number, originator string) bool
}

// Deps are the dependencies of a Service; Store and Credit are required.
type Deps struct {
	Store  *Store
	Credit *credit.Store
	// Submitter submits messages that are due at once; nil leaves them to LeaseDue and
	// allows every valid text and originator.
	Submitter Submitter
	// CheckURL returns an error if the gateway may not call a URL; nil allows all.
	CheckURL func(string) error
	Now      func() time.Time // nil means time.Now
}

// defaultKeyRetention is the default of Order.KeyRetention.
const defaultKeyRetention = 24 * time.Hour

// Service accepts orders and manages pending messages. It is safe for concurrent use.
type Service struct {
	deps      Deps
	alphabet  *sms.Alphabet
	segmenter *sms.Segmenter
	// reference is the last reference of a concatenated message. References increase, so that
	// consecutive messages to a number have different references.
	reference atomic.Uint32
}

// New returns a Service.
func New(d Deps) (*Service, error) {
	if d.Store == nil || d.Credit == nil {
		return nil, errors.New("message: Store and Credit are required")
	}
	if d.Now == nil {
		d.Now = time.Now
	}
	s := &Service{deps: d, alphabet: sms.NewAlphabet(), segmenter: sms.New()}
	s.reference.Store(rand.Uint32()) // two gateways do not begin with the same number
	return s, nil
}

// Preview returns the parts and the cost of an order. It returns
// relay.KindInvalid with the parameters for an order that Send would refuse.
func (s *Service) Preview(ctx context.Context, o Order) (Preview, error) {
	encoded, p := s.check(o)
	if err := p.Err(); err != nil {
		return Preview{}, err
	}
	balance, err := s.deps.Credit.Balance(ctx, o.Account)
	return Preview{Parts: len(encoded.Parts), Cost: int64(len(encoded.Parts) * len(o.Destinations)), Credit: balance}, err
}

// Send charges for an order and queues it durably.
//
// Send returns relay.KindInvalid with the parameters for an order that breaks a rule or has
// the key of another order, relay.KindNoCredit if the account has too little credit, and
// relay.KindUnavailable if the order may or may not have been saved: an order with a Key can
// be repeated.
func (s *Service) Send(ctx context.Context, o Order) (OrderResult, error) {
	// 1. Validate the order.
	encoded, p := s.check(o)
	if err := p.Err(); err != nil {
		return OrderResult{}, err
	}
	o.Originator = sms.NormalizeOriginator(o.Originator)

	// 2. Make the records.
	records := OrderRecords{Account: o.Account, Now: s.deps.Now()}
	if s.deps.Submitter != nil {
		records.Lease = records.Now.Add(s.deps.Submitter.Lease())
	}
	var err error
	if records.Messages, err = s.newMessages(ctx, o, encoded, records.Now); err != nil {
		return OrderResult{}, err
	}
	sent := OrderResult{Messages: make([]View, len(records.Messages)), Cost: records.Credits()}
	for i := range records.Messages {
		m := &records.Messages[i]
		sent.Messages[i] = m.View(0)
		sent.Messages[i].Data = m.Text()
	}
	if records.Key, err = idempotencyKey(o, encoded, sent); err != nil {
		return OrderResult{}, err
	}

	// 3. Save, charge and queue them. If the answer of the database may have been lost, save
	// them again: messages whose ids exist are not charged twice.
	answer, err := s.deps.Store.Save(ctx, records)
	if relay.KindOf(err) == relay.KindUnavailable && ctx.Err() == nil {
		answer, err = s.deps.Store.Save(ctx, records)
	}
	switch {
	case relay.KindOf(err) == relay.KindConflict:
		return OrderResult{}, relay.Invalid("Idempotency-Key", "The Idempotency-Key was used for another request.")
	case err != nil:
		return OrderResult{}, err
	case answer != nil:
		repeated := OrderResult{Repeated: true}
		if err := json.Unmarshal(answer, &repeated); err != nil {
			return OrderResult{}, fmt.Errorf("message: answer of a repeated order: %w", err)
		}
		return repeated, nil
	}

	// 4. Submit them, if they are due now.
	if s.deps.Submitter != nil && !records.Messages[0].ScheduledFor.After(records.Now) {
		s.deps.Submitter.Dispatch(records.Messages, records.Lease)
	}
	return sent, nil
}

// newMessages returns one message for each destination, with ids.
func (s *Service) newMessages(ctx context.Context, o Order, encoded Encoded, now time.Time) ([]Message, error) {
	id, err := s.deps.Store.Reserve(ctx, len(encoded.Parts)*len(o.Destinations))
	if err != nil {
		return nil, err
	}
	// If the order names a number several times, each of its messages of several parts gets
	// another reference: the phone must not join parts of two messages.
	maxRepeats, seen := 1, make(map[string]int, len(o.Destinations))
	for _, number := range o.Destinations {
		seen[number]++
		maxRepeats = max(maxRepeats, seen[number])
	}
	reference := s.reference.Add(uint32(maxRepeats))
	encodings := make([]Encoded, maxRepeats)
	for i := range encodings {
		if encodings[i] = encoded; len(encoded.Parts) == 1 {
			continue
		}
		if encodings[i], err = o.Body.Encode(byte(reference-uint32(i)), s.fitsSevenBit(o.Destinations)); err != nil {
			return nil, fmt.Errorf("message: encode: %w", err)
		}
	}

	receivedAt := now.UTC().Truncate(time.Millisecond)
	scheduledFor := receivedAt
	if o.SendAt.After(receivedAt) {
		scheduledFor = o.SendAt.UTC()
	}
	clear(seen)
	messages := make([]Message, len(o.Destinations))
	for i, number := range o.Destinations {
		e := encodings[seen[number]]
		seen[number]++
		messages[i] = Message{
			ID: id, Account: o.Account, Originator: o.Originator, Destination: number, Coding: e.Coding,
			Flash: o.Flash, Replace: o.Replace, Report: o.Report, Origin: o.Origin, IP: o.IP, Trace: tracing.FromContext(ctx),
			ReceivedAt: receivedAt, ScheduledFor: scheduledFor, Parts: make([]Part, len(e.Parts)),
		}
		for n, part := range e.Parts {
			part.State, part.ScheduledAt, part.ChangedAt = Pending, scheduledFor, receivedAt
			messages[i].Parts[n] = part
		}
		id += ID(len(e.Parts))
	}
	return messages, nil
}

// idempotencyKey returns the idempotency key of an order, with sent as the answer to store.
func idempotencyKey(o Order, encoded Encoded, sent OrderResult) (IdempotencyKey, error) {
	if o.Key == "" {
		return IdempotencyKey{}, nil
	}
	answer, err := json.Marshal(sent)
	if err != nil {
		return IdempotencyKey{}, fmt.Errorf("message: encode: %w", err)
	}
	order, err := json.Marshal([]any{
		o.Destinations, o.Originator, encoded.Coding, encoded.Parts, o.SendAt.UnixMilli(), o.Report, o.Replace, o.Flash, o.Origin,
	})
	if err != nil {
		return IdempotencyKey{}, fmt.Errorf("message: encode: %w", err)
	}
	hash := func(b []byte) string {
		sum := sha256.Sum256(b)
		return hex.EncodeToString(sum[:])
	}
	return IdempotencyKey{Hash: hash([]byte(o.Key)), OrderHash: hash(order), Answer: answer, Retention: cmp.Or(o.KeyRetention, defaultKeyRetention)}, nil
}

// Pending returns a page of the pending parts of an account, by id, and their total.
func (s *Service) Pending(ctx context.Context, acct relay.AccountID, offset, limit int) ([]View, int, error) {
	return s.deps.Store.Pending(ctx, acct, offset, limit)
}

// Delete removes a pending part and refunds it. It returns relay.KindNotFound if the account
// has no pending part with the id.
func (s *Service) Delete(ctx context.Context, acct relay.AccountID, part ID) error {
	return s.deps.Store.Delete(ctx, acct, part, s.deps.Now())
}
