package inbound

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"time"

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
	// By is the account of the request's token; 0 for none.
	By relay.AccountID
	// Messages parses the messages of the request. description describes a request without
	// messages.
	Messages func() (found []Message, description string, err error)
	// Frames returns the steps of a request with frames, and of each frame.
	Frames func(ctx context.Context) (post []Step, frames []FrameTrace, err error)
}

// FrameTrace is the evaluation of a frame by rules.
type FrameTrace struct {
	ID   string // the id of its journal record
	Text string // a description
	// Steps are the steps in which the frame was parsed and stored, in order.
	Steps []Step
	Rules []RuleTrace
}

// RuleTrace is the evaluation of a frame by a rule.
type RuleTrace struct {
	RuleID string
	Text   string
	// About is the id of the alarm or the frame that the deliveries are about; empty if there
	// are no deliveries.
	About string
}

// Tracer traces events through the gateway. Traces are not stored; each one is
// assembled on request.
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
	Text    string
}

// Trace traces an event. It returns relay.KindNotFound if this gateway does not have the event. For
// a message without deliveries the trace has the decision under the current relays.
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
	origin := "from " + p.Source
	if p.By != 0 {
		origin += ", by account " + p.By.String()
		if a, err := t.Accounts.Account(ctx, p.By); err == nil {
			origin = fmt.Sprintf("from %s, by account %s (%d)", p.Source, a.Name, p.By)
		}
	}
	t.add(p.ReceivedAt, "received", "", origin+"; safe on disk")
	switch p.State {
	case event.Pending:
		t.add(time.Time{}, "waits", "", "has not been processed yet")
		return nil
	case event.Quarantined, event.Unrouted:
		t.add(time.Time{}, string(p.State), "", p.Reason)
	}
	switch p.Kind {
	case event.Uplink:
		return t.frames(ctx, p)
	case event.SMS:
	default:
		return nil
	}
	found, description, err := p.Messages()
	if description != "" {
		t.add(time.Time{}, "read", "", description)
	}
	if relay.KindOf(err) == relay.KindUnavailable {
		return err
	}
	for _, m := range found {
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
	post, found, err := p.Frames(ctx)
	if relay.KindOf(err) == relay.KindUnavailable {
		t.add(time.Time{}, "waits", "", "the frames cannot be read now, because a back end is down")
		return nil
	}
	if err != nil {
		return err
	}
	t.trace.Steps = append(t.trace.Steps, post...)
	for _, f := range found {
		t.add(time.Time{}, "read", f.ID, f.Text)
		for _, s := range f.Steps {
			t.add(s.At, s.Name, f.ID, s.Text)
		}
		for _, r := range f.Rules {
			t.add(time.Time{}, "rule", f.ID, "rule "+r.RuleID+": "+r.Text)
			if r.About == "" {
				continue
			}
			ds, err := t.Deliveries.OfMessage(ctx, r.About)
			if err != nil {
				return err
			}
			for i := range ds {
				if ds[i].Kind == outbox.KindRule && ds[i].Relay == r.RuleID {
					t.delivery(f.ID, &ds[i])
					t.trace.Deliveries = append(t.trace.Deliveries, ds[i])
				}
			}
		}
	}
	return nil
}

func (t *traceBuilder) message(ctx context.Context, m Message) error {
	text := fmt.Sprintf("from %s to %s, coding %d", m.From, m.To, m.Coding)
	t.add(time.Time{}, "read", m.ID, text)
	for _, note := range NotesOf(&m) {
		t.add(time.Time{}, "note", m.ID, note)
	}
	traced, err := t.Service.TraceMessage(ctx, m)
	if err != nil {
		return err
	}
	switch p := traced.Part; {
	case traced.DuplicateOf != "":
		t.add(time.Time{}, "duplicate", m.ID, "the same as "+traced.DuplicateOf+", sent again by the carrier")
		return nil
	case p != nil && traced.MessageID == "":
		t.add(time.Time{}, "joined", m.ID, fmt.Sprintf("part %d of %d; waits for the others, or they have expired", p.Number, p.Total))
	case p != nil:
		t.add(time.Time{}, "joined", m.ID, fmt.Sprintf("part %d of %d of the message %s", p.Number, p.Total, traced.MessageID))
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
		t.add(time.Time{}, "routed", id, "no deliveries; as the relays are now: "+cmp.Or(traced.Decision.Outcome, traced.Decision.Reason))
	}
	for i := range ds {
		t.delivery(id, &ds[i])
	}
	t.trace.Deliveries = append(t.trace.Deliveries, ds...)
	return nil
}

func (t *traceBuilder) delivery(id string, d *outbox.Delivery) {
	creator := "relay"
	if d.Kind == outbox.KindRule {
		creator = "rule"
	}
	t.add(d.CreatedAt, "routed", id, fmt.Sprintf("%s %s: delivery %s to %s", creator, d.Relay, d.ID, outbox.MaskTarget(d.Target())))
	for i, a := range d.Attempts {
		took := a.Duration.Round(time.Millisecond)
		outcome := fmt.Sprintf("answered %d after %s", a.Status, took)
		if a.Error != "" {
			outcome = fmt.Sprintf("%s after %s", cmp.Or(a.Reason, a.Error), took)
		}
		t.add(a.At, "attempt", id, fmt.Sprintf("delivery %s, attempt %d: %s", d.ID, i+1, outcome))
	}
	text := fmt.Sprintf("delivery %s is %s", d.ID, d.State)
	if d.Reason != "" {
		text += ": " + d.Reason
	}
	if !d.NextAttemptAt.IsZero() {
		text += ", next at " + d.NextAttemptAt.UTC().Format(time.RFC3339Nano)
	}
	t.add(time.Time{}, "state", id, text)
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
		holder, err := s.deps.Store.Holder(ctx, claimKey(&m))
		if err != nil {
			return MessageTrace{}, fmt.Errorf("inbound: carrier ids: %w", err)
		}
		if holder != "" && holder != m.ID {
			return MessageTrace{DuplicateOf: holder}, nil
		}
	}
	if p, ok := PartOf(&m); ok {
		messageID, err := s.deps.Store.MessageOf(ctx, groupKey(&m, p), m.ID)
		if err != nil {
			return MessageTrace{}, fmt.Errorf("inbound: parts: %w", err)
		}
		return MessageTrace{Part: &p, MessageID: messageID}, nil
	}
	routes, err := s.routeCache.routes(ctx, []string{m.To})
	if err != nil {
		return MessageTrace{}, fmt.Errorf("inbound: relays: %w", err)
	}
	return MessageTrace{MessageID: m.ID, Decision: Decide(&m, routes[m.To], s.o.Settings)}, nil
}
