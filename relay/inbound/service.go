package inbound

import (
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"log/slog"
	"time"

	"github.com/penstock/penstock/decoders/gsm"
	"github.com/penstock/penstock/relay/account"
	"github.com/penstock/penstock/relay/event"
	"github.com/penstock/penstock/relay/outbox"
)

// Deps is what Service works with; all of it but Aside is required.
type Deps struct {
	Relays     Relays
	Claims     Claims
	Deliveries Deliveries
	Inbox      Inbox
	Parts      Parts
	Dispatcher outbox.Dispatcher
	// Aside notes what became of messages that were joined without an event at
	// hand; nil notes nothing.
	Aside Aside
}

// Options has the settings of Service; the zero value works.
type Options struct {
	Settings
	// Lease is how long the first attempt, made at once, may take before
	// somebody else may make it; 0 means one minute.
	Lease time.Duration
	// Remember is how long a carrier's id is remembered; 0 means seven days.
	Remember time.Duration
	// JoinWait is how long a message waits for its missing parts, counted from
	// the first that came; 0 means five minutes.
	JoinWait time.Duration
	// SweepEvery is how often Run looks for what waited long enough; 0 means one
	// second.
	SweepEvery time.Duration
	Logger     *slog.Logger // nil means slog.Default
	// Now is the clock; nil means time.Now.
	Now func() time.Time
}

// Service takes messages in and sends them on their way.
type Service struct {
	deps  Deps
	o     Options
	known known

	assembler assembler
}

// New makes a Service.
func New(d Deps, o Options) (*Service, error) {
	if d.Relays == nil || d.Claims == nil || d.Deliveries == nil || d.Inbox == nil || d.Parts == nil || d.Dispatcher == nil {
		return nil, errors.New("inbound: a dependency is missing")
	}
	o.Lease = cmp.Or(max(o.Lease, 0), time.Minute)
	o.Remember = cmp.Or(max(o.Remember, 0), 7*24*time.Hour)
	o.JoinWait = cmp.Or(max(o.JoinWait, 0), 5*time.Minute)
	o.SweepEvery = cmp.Or(max(o.SweepEvery, 0), time.Second)
	o.Logger = cmp.Or(o.Logger, slog.Default())
	if o.Now == nil {
		o.Now = time.Now
	}
	return &Service{deps: d, o: o, known: known{relays: d.Relays}, assembler: assembler{gsm.NewAlphabet()}}, nil
}

// Result is what became of one message.
type Result struct {
	MessageID string
	// Account is the relay's, or the message's own when none matched.
	Account account.ID
	State   event.State
	Reason  string
	Outcome string
	// Deliveries counts those created now; Existing those that were there.
	Deliveries int
	Existing   int
}

// Receive routes a batch of messages and returns what became of each, in order.
// Its error means that a back end is down and nothing is certain: the same
// batch is given again later, which then changes only what is missing. What is
// wrong with a message of its own is in its Result.
func (s *Service) Receive(ctx context.Context, msgs []Message) ([]Result, error) {
	routes, err := s.known.routes(ctx, numbers(msgs))
	if err != nil {
		return nil, fmt.Errorf("inbound: relays: %w", err)
	}
	holders, err := s.claim(ctx, msgs)
	if err != nil {
		return nil, fmt.Errorf("inbound: carrier ids: %w", err)
	}
	parts, err := s.gather(ctx, msgs, holders)
	if err != nil {
		return nil, err
	}
	p := plan{results: make([]Result, len(msgs))}
	for i := range msgs {
		m := &msgs[i]
		if holders[i] != m.ID {
			p.results[i] = Result{MessageID: m.ID, Account: m.Account, State: event.Done, Outcome: "duplicate of " + holders[i]}
			continue
		}
		if a, ok := parts[i]; ok {
			s.part(&p, i, m, a, routes[m.To])
			continue
		}
		p.add(i, m, Decide(m, routes[m.To], s.o.Settings))
	}
	if err := s.perform(ctx, &p); err != nil {
		return nil, err
	}
	return p.results, s.end(ctx, &p)
}

// claim returns for each message the id of the message that its carrier's id
// stands for: its own, unless the carrier handed it over before.
func (s *Service) claim(ctx context.Context, msgs []Message) ([]string, error) {
	holders := make([]string, len(msgs))
	var claims []Claim
	var index []int
	for i := range msgs {
		holders[i] = msgs[i].ID
		if msgs[i].CarrierID != "" {
			claims, index = append(claims, Claim{Key: claimKey(&msgs[i]), Holder: msgs[i].ID}), append(index, i)
		}
	}
	if len(claims) == 0 {
		return holders, nil
	}
	held, err := s.deps.Claims.Claim(ctx, claims, s.o.Remember)
	if err != nil {
		return nil, err
	}
	for n, i := range index {
		holders[i] = held[n]
	}
	return holders, nil
}

// claimKey names a carrier's message: the account, the carrier and its id.
func claimKey(m *Message) string {
	sum := sha256.Sum256(fmt.Appendf(nil, "%d %q %q", m.Account, m.Carrier, m.CarrierID))
	return hex.EncodeToString(sum[:16])
}

func numbers(msgs []Message) []string {
	out := make([]string, len(msgs))
	for i := range msgs {
		out[i] = msgs[i].To
	}
	return out
}
