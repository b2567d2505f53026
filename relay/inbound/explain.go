package inbound

import (
	"cmp"
	"context"
	"fmt"

	"github.com/penstock/penstock/decoders/sms"
	"github.com/penstock/penstock/relay"
	"github.com/penstock/penstock/relay/outbox"
)

// Explanation is the predicted outcome of a message, with reasons.
type Explanation struct {
	Decision
	// Message is the message that would be relayed. For a part it is the message that is made
	// if the other parts do not arrive.
	Message Message
	// Part is set for a part, MissingParts are the numbers of the other parts.
	Part         *Part
	MissingParts []int
	// Outgoing are the deliveries as they would be sent, in their order.
	Outgoing []outbox.Outgoing
}

// Explain predicts the outcome of a message and saves or sends nothing. It completes a missing
// id with an example, and a missing time of receipt with the current time.
func (s *Service) Explain(ctx context.Context, m Message) (Explanation, error) {
	m.ID = cmp.Or(m.ID, "example")
	if m.ReceivedAt.IsZero() {
		m.ReceivedAt = s.o.Now().UTC()
	}
	relays, err := s.relayCache.relays(ctx, []string{m.To})
	if err != nil {
		return Explanation{}, fmt.Errorf("inbound: relays: %w", err)
	}
	e := Explanation{Message: m}
	if p, ok := PartOf(&m); ok {
		e.Part = &p
		e.Message, e.MissingParts = s.assembler.assemble([]Message{m})
	}
	e.Decision = Decide(&e.Message, relays[m.To], s.o.Settings)
	e.Outgoing, err = outbox.Preview(ctx, e.Deliveries, s.deps.Preview)
	return e, err
}

// Trial is a message for a trial of a relay.
type Trial struct {
	From, Text string
	// Send means that the message is delivered; otherwise nothing is saved or sent.
	Send bool
}

// Try passes a message to a relay as if the message had arrived for the number of the relay, and
// returns the result. Other relays are ignored.
func (s *Service) Try(ctx context.Context, r Relay, t Trial) (Explanation, error) {
	now := s.o.Now().UTC()
	m := Message{
		ID: relay.NewID(now), Account: r.Account, Carrier: "trial", From: t.From, To: r.Number, Text: t.Text,
		Coding: sms.GSM, ReceivedAt: now,
	}
	if !s.assembler.alphabet.Fits(t.Text) {
		m.Coding = sms.UCS2
	}
	e := Explanation{Message: m, Decision: Decide(&m, []*CompiledRelay{Compile(r)}, s.o.Settings)}
	var err error
	if e.Outgoing, err = outbox.Preview(ctx, e.Deliveries, s.deps.Preview); err != nil || !t.Send {
		return e, err
	}
	p := plan{results: make([]Result, 1)}
	p.add(0, &m, e.Decision)
	return e, s.perform(ctx, &p)
}
