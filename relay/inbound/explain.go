package inbound

import (
	"context"
	"fmt"

	"github.com/penstock/penstock/decoders/sms"
	"github.com/penstock/penstock/relay"
	"github.com/penstock/penstock/relay/outbox"
)

// exampleID replaces the id that a message would get.
const exampleID = "example"

// Explanation is the predicted outcome of a message, with reasons.
type Explanation struct {
	Decision
	// Message is the message that would be relayed: a part as it goes on when the others
	// never come.
	Message Message
	// Part describes a part and those that are missing; nil for a whole message.
	Part *PartExplained
	// Outgoing are the deliveries as they would go out, in their order.
	Outgoing []outbox.Outgoing
}

// PartExplained is a part of a message that waits for the others.
type PartExplained struct {
	Number, Total int
	Missing       []int // the numbers of the others
}

// Explain says what would become of a message without doing any of it: nothing
// is saved, counted or sent. A message without an id gets an example, one
// without a time of receipt has it now.
func (s *Service) Explain(ctx context.Context, m Message) (Explanation, error) {
	if m.ID == "" {
		m.ID = exampleID
	}
	if m.ReceivedAt.IsZero() {
		m.ReceivedAt = s.o.Now().UTC()
	}
	routes, err := s.routeCache.routes(ctx, []string{m.To})
	if err != nil {
		return Explanation{}, fmt.Errorf("inbound: relays: %w", err)
	}
	e := Explanation{Message: m}
	if p, ok := PartOf(&m); ok {
		e.Part = &PartExplained{Number: p.Number, Total: p.Total}
		e.Message, e.Part.Missing = s.assembler.assemble([]Message{m})
	}
	e.Decision = Decide(&e.Message, routes[m.To], s.o.Settings)
	e.Outgoing, err = outbox.Preview(ctx, e.Deliveries, s.deps.Preview)
	return e, err
}

// Trial is a message by which a relay is tried.
type Trial struct {
	From, Text string
	// Send delivers the message; otherwise nothing is saved or sent.
	Send bool
}

// Try passes a message to a relay as if it had come to its number, whichever relay else
// matches, and returns the result.
func (s *Service) Try(ctx context.Context, r Relay, t Trial) (Explanation, error) {
	now := s.o.Now().UTC()
	m := Message{
		ID: relay.NewID(now), Account: r.Account, Carrier: "trial", From: t.From, To: r.Number, Text: t.Text,
		Coding: sms.GSM, ReceivedAt: now,
	}
	if !s.assembler.alphabet.Fits(t.Text) {
		m.Coding = sms.UCS2
	}
	e := Explanation{Message: m, Decision: Decide(&m, []*Route{Compile(r)}, s.o.Settings)}
	var err error
	if e.Outgoing, err = outbox.Preview(ctx, e.Deliveries, s.deps.Preview); err != nil || !t.Send {
		return e, err
	}
	p := plan{results: make([]Result, 1)}
	p.add(0, &m, e.Decision)
	return e, s.perform(ctx, &p)
}
