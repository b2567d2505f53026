package inbound

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/penstock/penstock/decoders/sms"
	"github.com/penstock/penstock/relay"
	"github.com/penstock/penstock/relay/account"
	"github.com/penstock/penstock/relay/event"
	"github.com/penstock/penstock/relay/outbox"
)

// Posts finds events with their request bodies.
type Posts interface {
	// Post returns an event and its request. It returns relay.KindNotFound if this gateway
	// does not have the event.
	Post(ctx context.Context, id string) (Post, error)
}

// Post is an event with its request.
type Post struct {
	event.Event
	// TokenAccount is the account of the request's token; 0 for none.
	TokenAccount relay.AccountID
	// Messages parses the messages of the request. description describes a request without
	// messages.
	Messages func() (messages []Message, description string, err error)
	// Frames returns the steps of a request with frames, and of each frame.
	Frames func(ctx context.Context) (postSteps []Step, frames []FrameTrace, err error)
}

// FrameTrace is the evaluation of a frame by rules.
type FrameTrace struct {
	ID   string // the id of its journal record
	Text string // a sentence that describes the frame
	// Steps are the steps in which the frame was parsed and stored, in order.
	Steps []Step
	Rules []RuleTrace
}

// RuleTrace is the evaluation of a frame by a rule.
type RuleTrace struct {
	RuleID, Name string
	Text         string // a sentence with the result and its reason
	// MessageID is the MessageID of the deliveries: the id of an alarm or a frame; empty if
	// there are no deliveries.
	MessageID string
}

// Tracer traces events through the gateway. A trace is not stored, but assembled on request.
type Tracer struct {
	Posts      Posts
	Service    *Service
	Deliveries *outbox.Store
	Accounts   *account.Store
}

// Trace is an event with the steps of its processing.
type Trace struct {
	event.Event
	Steps      []Step
	Deliveries []outbox.Delivery // oldest first
}

// Step is one step in the processing of an event or of one of its messages.
type Step struct {
	At      time.Time // zero if the time is not stored
	Name    string    // received, read, duplicate, joined, routed, attempt, …
	Message string    // the id of the message; empty for the whole event
	Text    string    // one or more sentences
}

// Trace traces an event. It returns relay.KindNotFound if this gateway does not have the event. For
// a message of one part without deliveries the trace has the decision under the current relays.
func (t *Tracer) Trace(ctx context.Context, id string) (Trace, error) {
	p, err := t.Posts.Post(ctx, id)
	if err != nil {
		return Trace{}, err
	}
	b := traceBuilder{Tracer: t, trace: Trace{Event: p.Event}}
	err = b.event(ctx, &p)
	b.notes()
	return b.trace, err
}

// traceBuilder assembles a trace.
type traceBuilder struct {
	*Tracer
	trace Trace
	seen  []string // messages whose deliveries were added
}

func (t *traceBuilder) add(stepTime time.Time, name, message, text string) {
	t.trace.Steps = append(t.trace.Steps, Step{At: stepTime, Name: name, Message: message, Text: text})
}

func (t *traceBuilder) event(ctx context.Context, p *Post) error {
	received := "Received from source " + p.Source
	if p.TokenAccount != 0 {
		owner := p.TokenAccount.String()
		if a, err := t.Accounts.Account(ctx, p.TokenAccount); err == nil {
			owner = a.Name
		}
		received += " for account " + owner
	}
	t.add(p.ReceivedAt, "received", "", received+" and written to the journal.")
	switch {
	case p.State == event.Pending:
		t.add(time.Time{}, "waits", "", sentence("The event waits to be processed", p.Reason))
		return nil
	case p.State == event.Quarantined:
		t.add(time.Time{}, string(p.State), "", sentence("The event is quarantined", p.Reason)+" Correct the cause, then replay the event.")
	case p.State == event.Unrouted && p.Kind == event.Receipt:
		t.add(time.Time{}, string(p.State), "", sentence("No sent message matches the receipt", p.Reason))
	case p.State == event.Unrouted:
		t.add(time.Time{}, string(p.State), "", sentence("No relay takes the message", p.Reason)+" Add or change a relay, then replay the event.")
	}
	switch p.Kind {
	case event.Uplink:
		return t.frames(ctx, p)
	case event.SMS:
	default:
		return nil
	}
	messages, description, err := p.Messages()
	if description != "" {
		t.add(time.Time{}, "read", "", "The request is "+description+".")
	}
	if relay.KindOf(err) == relay.KindUnavailable {
		return err
	}
	for _, m := range messages {
		if err := t.message(ctx, m); err != nil {
			return err
		}
	}
	slices.SortStableFunc(t.trace.Deliveries, func(a, b outbox.Delivery) int { return a.CreatedAt.Compare(b.CreatedAt) })
	return nil
}

// notes adds the notes of the event that the steps do not have yet.
func (t *traceBuilder) notes() {
	for _, note := range t.trace.Notes {
		if !slices.ContainsFunc(t.trace.Steps, func(s Step) bool { return s.Name == "note" && s.Text == note }) {
			t.add(time.Time{}, "note", "", note)
		}
	}
}

func (t *traceBuilder) frames(ctx context.Context, p *Post) error {
	if p.Frames == nil {
		return nil
	}
	postSteps, frames, err := p.Frames(ctx)
	if relay.KindOf(err) == relay.KindUnavailable {
		t.add(time.Time{}, "waits", "", "The frames cannot be read now because a back end is down.")
		return nil
	}
	if err != nil {
		return err
	}
	t.trace.Steps = append(t.trace.Steps, postSteps...)
	for _, f := range frames {
		t.add(time.Time{}, "read", f.ID, f.Text)
		for _, s := range f.Steps {
			t.add(s.At, s.Name, f.ID, s.Text)
		}
		for _, r := range f.Rules {
			t.add(time.Time{}, "rule", f.ID, r.Text)
			if r.MessageID == "" {
				continue
			}
			ds, err := t.Deliveries.OfMessage(ctx, r.MessageID)
			if err != nil {
				return err
			}
			for i := range ds {
				if ds[i].Kind == outbox.KindRule && ds[i].Relay == r.RuleID {
					t.delivery(f.ID, "The rule "+strconv.Quote(r.Name), &ds[i])
					t.trace.Deliveries = append(t.trace.Deliveries, ds[i])
				}
			}
		}
	}
	return nil
}

func (t *traceBuilder) message(ctx context.Context, m Message) error {
	encoding := map[sms.Coding]string{sms.GSM: "GSM 7-bit", sms.Binary: "binary", sms.UCS2: "UCS-2"}[m.Coding]
	t.add(time.Time{}, "read", m.ID, fmt.Sprintf("The message is from %s to %s, encoding %s.", m.From, m.To, cmp.Or(encoding, fmt.Sprint(m.Coding))))
	for _, note := range NotesOf(&m) {
		t.add(time.Time{}, "note", m.ID, note)
	}
	traced, err := t.Service.TraceMessage(ctx, m)
	if err != nil {
		return err
	}
	switch p := traced.Part; {
	case traced.DuplicateOf != "":
		t.add(time.Time{}, "duplicate", m.ID, "The carrier sent the message again. It was received before as "+traced.DuplicateOf+", so it is dropped.")
		return nil
	case p != nil && traced.MessageID == "":
		t.add(time.Time{}, "joined", m.ID, fmt.Sprintf("This is part %d of %d of a message. It waits for the other parts, or they did not arrive in time.", p.Number, p.Total))
	case p != nil:
		t.add(time.Time{}, "joined", m.ID, fmt.Sprintf("This is part %d of %d of the message %s.", p.Number, p.Total, traced.MessageID))
	}
	return t.routed(ctx, cmp.Or(traced.MessageID, m.ID), traced)
}

// routed adds the deliveries of a message or, without deliveries, the decision under the current
// relays.
func (t *traceBuilder) routed(ctx context.Context, id string, traced MessageTrace) error {
	if slices.Contains(t.seen, id) {
		return nil
	}
	t.seen = append(t.seen, id)
	ds, err := t.Deliveries.OfMessage(ctx, id)
	if err != nil {
		return err
	}
	if len(ds) == 0 && traced.Part == nil {
		t.add(time.Time{}, "routed", id, sentence("No deliveries were created. With the current relays", cmp.Or(traced.Decision.Outcome, traced.Decision.Reason)))
	}
	for i := range ds {
		t.delivery(id, "The relay "+ds[i].Relay, &ds[i])
	}
	t.trace.Deliveries = append(t.trace.Deliveries, ds...)
	return nil
}

// delivery adds the steps of a delivery. creator is its relay or rule: "The relay v1".
func (t *traceBuilder) delivery(id, creator string, d *outbox.Delivery) {
	target := outbox.MaskTarget(d.Target())
	t.add(d.CreatedAt, "routed", id, creator+" creates a delivery to "+target+".")
	for i, a := range d.Attempts {
		result := cmp.Or(a.Reason, a.Error, fmt.Sprintf("answered %d", a.Status))
		took := a.Duration.Round(time.Millisecond).Milliseconds()
		if a.Duration > 0 {
			took = max(1, took)
		}
		t.add(a.At, "attempt", id, sentence(fmt.Sprintf("Attempt %d to deliver to %s ended after %d ms", i+1, target, took), result))
	}
	state := map[outbox.State]string{
		outbox.Queued:    "waits for its first attempt",
		outbox.Retrying:  "is attempted again at this time, because the last attempt failed",
		outbox.Delivered: "succeeded",
		outbox.Simulated: "was accepted by a simulator",
		outbox.Dead:      "failed and is not attempted again by itself",
	}[d.State]
	switch d.WaitsFor {
	case outbox.WaitsForBreaker:
		state = "waits because its endpoint is paused"
	case outbox.WaitsForTurn:
		state = "waits until the earlier deliveries to its endpoint have ended"
	}
	t.add(d.NextAttemptAt, "state", id, sentence("The delivery to "+target+" "+state, d.Reason))
}

// sentence appends a reason to the beginning of a sentence.
func sentence(beginning, reason string) string {
	if reason == "" {
		return beginning + "."
	}
	return beginning + ": " + strings.TrimSuffix(reason, ".") + "."
}

// MessageTrace has the stored results of processing a message.
type MessageTrace struct {
	// DuplicateOf is the id of an earlier message with the same carrier id.
	DuplicateOf string
	// Part is set for a part of a concatenated message.
	Part *Part
	// MessageID is the id of the reassembled message to which the part belongs; "" while parts
	// are missing. For a message of one part it is the message's own id.
	MessageID string
	// Decision is the decision under the current relays; zero for a duplicate or a part.
	Decision Decision
}

// TraceMessage traces a received message. It changes nothing.
func (s *Service) TraceMessage(ctx context.Context, m Message) (MessageTrace, error) {
	if m.CarrierID != "" {
		firstID, err := s.deps.Store.FirstMessageID(ctx, carrierIDKey(&m))
		if err != nil {
			return MessageTrace{}, fmt.Errorf("inbound: carrier ids: %w", err)
		}
		if firstID != "" && firstID != m.ID {
			return MessageTrace{DuplicateOf: firstID}, nil
		}
	}
	if p, ok := PartOf(&m); ok {
		messageID, err := s.deps.Store.MessageOf(ctx, groupKey(&m, p), m.ID)
		if err != nil {
			return MessageTrace{}, fmt.Errorf("inbound: parts: %w", err)
		}
		return MessageTrace{Part: &p, MessageID: messageID}, nil
	}
	relays, err := s.relayCache.relays(ctx, []string{m.To})
	if err != nil {
		return MessageTrace{}, fmt.Errorf("inbound: relays: %w", err)
	}
	return MessageTrace{MessageID: m.ID, Decision: Decide(&m, relays[m.To], s.o.Settings)}, nil
}
