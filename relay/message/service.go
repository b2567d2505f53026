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
	"github.com/penstock/penstock/relay/tracing"
)

// Balance returns an account's credit; credit.Store implements it.
type Balance interface {
	Balance(ctx context.Context, acct relay.AccountID) (int64, error)
}

// Deps are the dependencies of a Service; Store and Credit are required.
type Deps struct {
	Store  orderStore
	Credit Balance
	// Dispatcher submits messages that are due at once; nil leaves them to LeaseDue.
	Dispatcher Dispatcher
	// CheckURL returns an error if the gateway may not call a URL; nil allows all.
	CheckURL func(string) error
	// Carriers knows the capabilities of the numbers' carriers; nil allows everything
	// that is valid.
	Carriers Carriers
}

// Options are the options of Service; the zero value works.
type Options struct {
	// Lease is how long messages are leased to the Dispatcher; 0 means one minute.
	Lease time.Duration
	// KeepKeys is how long a client's key for an order is known; 0 means 24 h.
	KeepKeys time.Duration
	// Now is the clock; nil means time.Now.
	Now func() time.Time
}

// Service accepts orders and manages pending messages. It is safe for concurrent
// use.
type Service struct {
	deps     Deps
	o        Options
	alphabet *sms.Alphabet
	// segmenter splits texts into parts.
	segmenter *sms.Segmenter
	// reference counts orders, so that the parts of two messages to a number
	// differ in it.
	reference atomic.Uint32
}

// New makes a Service.
func New(d Deps, o Options) (*Service, error) {
	if d.Store == nil || d.Credit == nil {
		return nil, errors.New("message: store and credit are needed")
	}
	o.Lease = cmp.Or(max(o.Lease, 0), time.Minute)
	o.KeepKeys = cmp.Or(max(o.KeepKeys, 0), 24*time.Hour)
	if o.Now == nil {
		o.Now = time.Now
	}
	s := &Service{deps: d, o: o, alphabet: sms.NewAlphabet(), segmenter: sms.New()}
	s.reference.Store(rand.Uint32()) // two gateways do not begin alike
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
// It returns relay.KindInvalid with the parameters for an order that breaks a
// rule or repeats another's key, relay.KindNoCredit for one that the credit does
// not pay for, and relay.KindUnavailable if it is not known whether it was saved:
// an order with a Key can be repeated.
func (s *Service) Send(ctx context.Context, o Order) (Sent, error) {
	encoded, p := s.check(o)
	if err := p.Err(); err != nil {
		return Sent{}, err
	}
	o.Originator = sms.NormalizeOriginator(o.Originator)
	messages, err := s.messages(ctx, o, encoded)
	if err != nil {
		return Sent{}, err
	}
	b := Batch{Account: o.Account, Messages: messages, Now: s.o.Now()}
	if s.deps.Dispatcher != nil {
		b.Lease = b.Now.Add(s.o.Lease)
	}
	sent := Sent{Messages: make([]Entry, len(messages)), Cost: b.Credits()}
	for i := range messages {
		sent.Messages[i] = messages[i].sentEntry()
	}
	if b.Once, err = s.once(o, encoded, sent); err != nil {
		return Sent{}, err
	}
	saved, err := s.save(ctx, b)
	switch {
	case relay.KindOf(err) == relay.KindConflict:
		return Sent{}, relay.Invalid("Idempotency-Key", "The Idempotency-Key was used for another request.")
	case err != nil:
		return Sent{}, err
	case saved.Before != nil:
		return repeated(saved.Before)
	}
	s.dispatch(b)
	return sent, nil
}

// save is tried again once where the answer may have been lost: the ids of the
// messages keep that from charging twice.
func (s *Service) save(ctx context.Context, b Batch) (Saved, error) {
	saved, err := s.deps.Store.Save(ctx, b)
	if relay.KindOf(err) == relay.KindUnavailable && ctx.Err() == nil {
		saved, err = s.deps.Store.Save(ctx, b)
	}
	return saved, err
}

// dispatch dispatches the messages of a saved batch if they are due now.
func (s *Service) dispatch(b Batch) {
	if s.deps.Dispatcher == nil || b.Messages[0].ScheduledFor.After(b.Now) {
		return
	}
	s.deps.Dispatcher.Dispatch(b.Messages, b.Lease)
}

// messages makes one for each destination, with ids.
func (s *Service) messages(ctx context.Context, o Order, encoded Encoded) ([]Message, error) {
	first, err := s.deps.Store.Reserve(ctx, len(encoded.Parts)*len(o.Destinations))
	if err != nil {
		return nil, err
	}
	now := s.o.Now().UTC().Truncate(time.Millisecond)
	scheduled := now
	if o.SendAt.After(now) {
		scheduled = o.SendAt.UTC()
	}
	encodings, err := s.encodings(o, encoded)
	if err != nil {
		return nil, err
	}
	out, seen := make([]Message, len(o.Destinations)), make(map[string]int)
	for i, number := range o.Destinations {
		encoded := encodings[seen[number]]
		seen[number]++
		out[i] = Message{
			ID: first, Account: o.Account, Originator: o.Originator, Destination: number, Coding: encoded.Coding,
			Flash: o.Flash, Replace: o.Replace, Report: o.Report, Origin: o.Origin, IP: o.IP, Trace: tracing.FromContext(ctx),
			ReceivedAt: now, ScheduledFor: scheduled, Parts: make([]Part, len(encoded.Parts)),
		}
		for n, part := range encoded.Parts {
			part.State, part.ScheduledAt, part.ChangedAt = Pending, scheduled, now
			out[i].Parts[n] = part
		}
		first += ID(len(encoded.Parts))
	}
	return out, nil
}

// encodings encodes the body as often as a number is in the order, each time with another
// reference: a phone must not join parts of two messages.
func (s *Service) encodings(o Order, encoded Encoded) ([]Encoded, error) {
	most, seen := 1, make(map[string]int)
	for _, number := range o.Destinations {
		seen[number]++
		most = max(most, seen[number])
	}
	last := s.reference.Add(uint32(most))
	out := make([]Encoded, most)
	for i := range out {
		if out[i] = encoded; len(encoded.Parts) == 1 {
			continue
		}
		var err error
		if out[i], err = o.Body.Encode(byte(last-uint32(i)), s.fitsSevenBit(o.Destinations)); err != nil {
			return nil, fmt.Errorf("message: encode: %w", err)
		}
	}
	return out, nil
}

// once binds an order to its key.
func (s *Service) once(o Order, encoded Encoded, sent Sent) (Once, error) {
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
	return Once{Key: digest([]byte(o.Key)), Order: digest(order), Answer: answer, Keep: cmp.Or(o.KeepKey, s.o.KeepKeys)}, nil
}

func digest(b []byte) string {
	sum := sha256.Sum256(b)
	return hex.EncodeToString(sum[:])
}

func repeated(answer []byte) (sent Sent, err error) {
	if err := json.Unmarshal(answer, &sent); err != nil {
		return sent, fmt.Errorf("message: answer of a repeated order: %w", err)
	}
	sent.Repeated = true
	return sent, nil
}

// sentEntry is the message in the answer to Send: the entry of its first part
// with the text of all parts.
func (m *Message) sentEntry() Entry {
	e := m.EntryOf(0)
	e.Data = m.Text()
	return e
}

// Pending lists the pending parts of an account by id, and how many there are.
func (s *Service) Pending(ctx context.Context, acct relay.AccountID, offset, limit int) ([]Entry, int, error) {
	return s.deps.Store.Pending(ctx, acct, offset, limit)
}

// Delete removes a pending part and refunds it. It returns relay.KindNotFound
// for one that the account does not have or that is not pending any more.
func (s *Service) Delete(ctx context.Context, acct relay.AccountID, entry ID) error {
	return s.deps.Store.Delete(ctx, acct, entry, s.o.Now())
}

// Get loads a message by its id; relay.KindNotFound if the account has none.
func (s *Service) Get(ctx context.Context, acct relay.AccountID, id ID) (Message, error) {
	return s.deps.Store.Get(ctx, acct, id)
}
