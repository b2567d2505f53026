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
	"strings"
	"sync/atomic"
	"time"

	"github.com/penstock/penstock/decoders/sms"
	"github.com/penstock/penstock/relay"
	"github.com/penstock/penstock/relay/credit"
	"github.com/penstock/penstock/relay/tracing"
)

// Submitter submits messages to carriers and has the capabilities of the carrier that a
// number's messages are sent over; delivery/submit implements it.
type Submitter interface {
	// Lease is the duration of the lease that dispatched messages must have.
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
	// allows everything that is valid.
	Submitter Submitter
	// CheckURL returns an error if the gateway may not call a URL; nil allows all.
	CheckURL func(string) error
	Now      func() time.Time // nil means time.Now
}

// keyTime is the time for which a client's key for an order is known, unless the order says
// so.
const keyTime = 24 * time.Hour

// Service accepts orders and manages pending messages. It is safe for concurrent
// use.
type Service struct {
	deps      Deps
	alphabet  *sms.Alphabet
	segmenter *sms.Segmenter
	// reference counts orders, so that the parts of two messages to a number
	// differ in it.
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

// Text returns a text body that is truncated to at most maxParts parts, 1 to 255;
// 0 sends all of it. A leading byte order mark is removed.
func (s *Service) Text(text string, maxParts int) Body {
	return textBody{segmenter: s.segmenter, text: strings.TrimPrefix(text, "\ufeff"), maxParts: maxParts}
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
// It returns relay.KindInvalid with the parameters for an order that breaks a
// rule or repeats another's key, relay.KindNoCredit for one that the credit does
// not pay for, and relay.KindUnavailable if it is not known whether it was saved:
// an order with a Key can be repeated.
func (s *Service) Send(ctx context.Context, o Order) (Sent, error) {
	// 1. Validate the order.
	encoded, p := s.check(o)
	if err := p.Err(); err != nil {
		return Sent{}, err
	}
	o.Originator = sms.NormalizeOriginator(o.Originator)

	// 2. Make the records.
	b := Batch{Account: o.Account, Now: s.deps.Now()}
	if s.deps.Submitter != nil {
		b.Lease = b.Now.Add(s.deps.Submitter.Lease())
	}
	var err error
	if b.Messages, err = s.messages(ctx, o, encoded, b.Now); err != nil {
		return Sent{}, err
	}
	sent := Sent{Messages: make([]Entry, len(b.Messages)), Cost: b.Credits()}
	for i := range b.Messages {
		m := &b.Messages[i]
		sent.Messages[i] = m.EntryOf(0)
		sent.Messages[i].Data = m.Text()
	}
	if b.Once, err = onceOf(o, encoded, sent); err != nil {
		return Sent{}, err
	}

	// 3. Save, charge and queue them. If the answer may have been lost, save them again: the
	// ids of the messages keep that from charging twice.
	answer, err := s.deps.Store.Save(ctx, b)
	if relay.KindOf(err) == relay.KindUnavailable && ctx.Err() == nil {
		answer, err = s.deps.Store.Save(ctx, b)
	}
	switch {
	case relay.KindOf(err) == relay.KindConflict:
		return Sent{}, relay.Invalid("Idempotency-Key", "The Idempotency-Key was used for another request.")
	case err != nil:
		return Sent{}, err
	case answer != nil:
		repeated := Sent{Repeated: true}
		if err := json.Unmarshal(answer, &repeated); err != nil {
			return Sent{}, fmt.Errorf("message: answer of a repeated order: %w", err)
		}
		return repeated, nil
	}

	// 4. Submit them, if they are due now.
	if s.deps.Submitter != nil && !b.Messages[0].ScheduledFor.After(b.Now) {
		s.deps.Submitter.Dispatch(b.Messages, b.Lease)
	}
	return sent, nil
}

// messages returns one message for each destination, with ids.
func (s *Service) messages(ctx context.Context, o Order, encoded Encoded, now time.Time) ([]Message, error) {
	id, err := s.deps.Store.Reserve(ctx, len(encoded.Parts)*len(o.Destinations))
	if err != nil {
		return nil, err
	}
	// A message of several parts to a number that the order names again is encoded with
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

	received := now.UTC().Truncate(time.Millisecond)
	scheduled := received
	if o.SendAt.After(received) {
		scheduled = o.SendAt.UTC()
	}
	clear(seen)
	messages := make([]Message, len(o.Destinations))
	for i, number := range o.Destinations {
		e := encodings[seen[number]]
		seen[number]++
		messages[i] = Message{
			ID: id, Account: o.Account, Originator: o.Originator, Destination: number, Coding: e.Coding,
			Flash: o.Flash, Replace: o.Replace, Report: o.Report, Origin: o.Origin, IP: o.IP, Trace: tracing.FromContext(ctx),
			ReceivedAt: received, ScheduledFor: scheduled, Parts: make([]Part, len(e.Parts)),
		}
		for n, part := range e.Parts {
			part.State, part.ScheduledAt, part.ChangedAt = Pending, scheduled, received
			messages[i].Parts[n] = part
		}
		id += ID(len(e.Parts))
	}
	return messages, nil
}

// onceOf returns the idempotency key of an order with its answer.
func onceOf(o Order, encoded Encoded, sent Sent) (Once, error) {
	if o.Key == "" {
		return Once{}, nil
	}
	answer, err := json.Marshal(sent)
	if err != nil {
		return Once{}, fmt.Errorf("message: encode: %w", err)
	}
	order, err := json.Marshal([]any{
		o.Destinations, o.Originator, encoded.Coding, encoded.Parts, o.SendAt.UnixMilli(), o.Report, o.Replace, o.Flash, o.Origin,
	})
	if err != nil {
		return Once{}, fmt.Errorf("message: encode: %w", err)
	}
	hash := func(b []byte) string {
		sum := sha256.Sum256(b)
		return hex.EncodeToString(sum[:])
	}
	return Once{Key: hash([]byte(o.Key)), Order: hash(order), Answer: answer, Keep: cmp.Or(o.KeepKey, keyTime)}, nil
}

// Pending lists the pending parts of an account by id, and how many there are.
func (s *Service) Pending(ctx context.Context, acct relay.AccountID, offset, limit int) ([]Entry, int, error) {
	return s.deps.Store.Pending(ctx, acct, offset, limit)
}

// Delete removes a pending part and refunds it. It returns relay.KindNotFound
// for one that the account does not have or that is not pending any more.
func (s *Service) Delete(ctx context.Context, acct relay.AccountID, entry ID) error {
	return s.deps.Store.Delete(ctx, acct, entry, s.deps.Now())
}
