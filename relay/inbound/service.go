package inbound

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"log/slog"
	"sync"
	"time"

	"github.com/penstock/penstock/decoders"
	"github.com/penstock/penstock/decoders/sms"
	"github.com/penstock/penstock/relay"
	"github.com/penstock/penstock/relay/event"
	"github.com/penstock/penstock/relay/outbox"
)

// Deps are the dependencies of Service. All but LateStatuses and Preview are
// required.
type Deps struct {
	Store      *Store
	Deliveries outbox.Sender
	// LateStatuses sets the statuses of the events of reassembled messages; nil disables it.
	LateStatuses LateStatuses
	// Preview completes the requests that Explain returns; nil returns them as they are saved.
	Preview outbox.Previewer
}

// Options has the settings of Service; the zero value works.
type Options struct {
	Settings
	// Lease is the duration of the lease on a reassembled message while it is routed; 0 means
	// one minute.
	Lease time.Duration
	// Retention is the time for which carriers' ids and parked messages are stored; 0 means 7 days.
	Retention time.Duration
	// JoinWait is the time for which a message waits for missing parts after its first part;
	// 0 means five minutes.
	JoinWait time.Duration
	Logger   *slog.Logger     // nil means slog.Default
	Now      func() time.Time // nil means time.Now
}

// Service routes received messages.
type Service struct {
	deps       Deps
	o          Options
	relayCache relayCache

	assembler assembler

	mu      sync.Mutex
	dropped []ReassembledMessage // see keepDropped
}

// New returns a Service.
func New(d Deps, o Options) (*Service, error) {
	if d.Store == nil || d.Deliveries.Store == nil {
		return nil, errors.New("inbound: a dependency is missing")
	}
	o.Lease = cmp.Or(max(o.Lease, 0), time.Minute)
	o.Retention = cmp.Or(max(o.Retention, 0), 7*24*time.Hour)
	o.JoinWait = cmp.Or(max(o.JoinWait, 0), 5*time.Minute)
	o.Logger = cmp.Or(o.Logger, slog.Default())
	if o.Now == nil {
		o.Now = time.Now
	}
	return &Service{deps: d, o: o, relayCache: relayCache{store: d.Store}, assembler: assembler{sms.NewAlphabet()}}, nil
}

// Result is the result of routing one message.
type Result struct {
	MessageID string
	// Account is the account of the relay, or of the message if no relay matches.
	Account relay.AccountID
	State   event.State
	Reason  string
	// Outcome names the original of a duplicate message, or missing parts.
	Outcome string
	Notes   decoders.Notes
}

// Receive routes a batch of messages and returns the result of each, in order. After an error of a
// back end the batch may be saved in part; the caller repeats it, which adds the missing records.
// The Result of an invalid message reports the problem.
func (s *Service) Receive(ctx context.Context, msgs []Message) ([]Result, error) {
	numbers := make([]string, len(msgs))
	for i := range msgs {
		numbers[i] = msgs[i].To
	}
	relays, err := s.relayCache.relays(ctx, numbers)
	if err != nil {
		return nil, fmt.Errorf("inbound: relays: %w", err)
	}
	firstIDs, err := s.claim(ctx, msgs)
	if err != nil {
		return nil, fmt.Errorf("inbound: carrier ids: %w", err)
	}
	parts, err := s.addParts(ctx, msgs, firstIDs)
	if err != nil {
		return nil, err
	}
	p := plan{results: make([]Result, len(msgs)), deliveries: make([]outbox.Delivery, 0, len(msgs))} // most have one
	for i := range msgs {
		m := &msgs[i]
		part, isPart := parts[i]
		result := Result{MessageID: m.ID, Account: m.Account, State: event.Done}
		switch {
		case firstIDs[i] != m.ID:
			result.Outcome = "duplicate of " + firstIDs[i]
			p.results[i] = result
		case !isPart:
			p.add(i, m, Decide(m, relays[m.To], s.o.Settings))
		case part.State == Completed || part.State == RouteAgain:
			part.Group.Event = m.ID
			s.planReassembled(&p, i, part.Group, relays[m.To], part.State == RouteAgain)
		default: // it waits, or repeats a part
			result.Notes = NotesOf(m)
			if part.State == Repeated {
				result.Outcome = "duplicate of " + part.MessageID
			}
			p.results[i] = result
		}
	}
	if err := s.perform(ctx, &p); err != nil {
		return nil, err
	}
	return p.results, s.end(ctx, &p)
}

// claim returns for each message the id of the first message with its carrier id: its own id,
// unless the carrier has delivered the message before.
func (s *Service) claim(ctx context.Context, msgs []Message) ([]string, error) {
	firstIDs := make([]string, len(msgs))
	var claims []Claim
	var index []int
	for i := range msgs {
		firstIDs[i] = msgs[i].ID
		if msgs[i].CarrierID != "" {
			claims, index = append(claims, Claim{Key: carrierIDKey(&msgs[i]), MessageID: msgs[i].ID}), append(index, i)
		}
	}
	if len(claims) == 0 {
		return firstIDs, nil
	}
	claimed, err := s.deps.Store.Claim(ctx, claims, s.o.Retention)
	if err != nil {
		return nil, err
	}
	for n, i := range index {
		firstIDs[i] = claimed[n]
	}
	return firstIDs, nil
}

// carrierIDKey returns a hash of the account, the carrier and the carrier's id of a message.
func carrierIDKey(m *Message) string {
	sum := sha256.Sum256(fmt.Appendf(nil, "%d %q %q", m.Account, m.Carrier, m.CarrierID))
	return hex.EncodeToString(sum[:16])
}

// plan has the results of a batch of messages and the records to save for them.
type plan struct {
	results       []Result
	deliveries    []outbox.Delivery
	inboxMessages []InboxMessage
	endedGroups   []endedGroup
}

func (p *plan) add(i int, m *Message, d Decision) {
	r := Result{MessageID: m.ID, Account: m.Account, State: d.State, Reason: d.Reason, Notes: NotesOf(m)}
	if d.Matched != nil {
		r.Account = d.Matched.Account
	}
	if d.State == event.Done && len(d.Deliveries) == 0 && d.InboxMessage == nil {
		r.Notes.Add("nothing is delivered: " + d.Outcome)
	}
	p.results[i] = r
	p.deliveries = append(p.deliveries, d.Deliveries...)
	if d.InboxMessage != nil {
		p.inboxMessages = append(p.inboxMessages, *d.InboxMessage)
	}
}

// perform saves the inbox messages and the deliveries of a plan and dispatches the new
// deliveries. It is idempotent.
func (s *Service) perform(ctx context.Context, p *plan) error {
	if len(p.inboxMessages) > 0 {
		if err := s.deps.Store.Keep(ctx, p.inboxMessages); err != nil {
			return fmt.Errorf("inbound: inbox: %w", err)
		}
	}
	if len(p.deliveries) == 0 {
		return nil
	}
	now := s.o.Now()
	for i := range p.deliveries {
		p.deliveries[i].CreatedAt = now.Add(time.Duration(i)) // lists show them in the order of their messages
	}
	if err := s.deps.Deliveries.Send(ctx, p.deliveries); err != nil {
		return fmt.Errorf("inbound: deliveries: %w", err)
	}
	return nil
}
