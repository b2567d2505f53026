package admin

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/gofiber/fiber/v2"

	"github.com/penstock/penstock/ingest/intake"
	"github.com/penstock/penstock/relay"
	"github.com/penstock/penstock/relay/event"
	"github.com/penstock/penstock/relay/inbound"
	"github.com/penstock/penstock/relay/outbox"
)

// Tracing finds out what became of inbound messages.
type Tracing struct {
	// Messages reads those of an event, or says what it is instead.
	Messages func(it *intake.Item) (found []inbound.Message, is string, err error)
	// Follow says what became of one.
	Follow func(ctx context.Context, m inbound.Message) (inbound.Fate, error)
	// Deliveries returns those of a message.
	Deliveries func(ctx context.Context, messageID string) ([]outbox.Delivery, error)
}

// tracedJSON is an event and its way through the gateway.
type tracedJSON struct {
	eventJSON
	Trace      []stepJSON     `json:"trace"`
	Deliveries []deliveryJSON `json:"deliveries"`
}

// stepJSON is one thing that befell a message.
type stepJSON struct {
	At      *string `json:"at"`      // null when no time is kept
	Step    string  `json:"step"`    // received, read, duplicate, joined, routed, attempt
	Message string  `json:"message"` // its id; empty for the whole event
	Text    string  `json:"text"`
}

// getEvent shows one event with its trace.
func (s *Surface) getEvent(c *fiber.Ctx) error {
	id := strings.Clone(c.Params("event"))
	for _, in := range s.Intakes {
		e, it, err := in.Event(c.UserContext(), id)
		if relay.KindOf(err) == relay.KindNotFound {
			continue
		}
		if err != nil {
			return err
		}
		t := trace{Surface: s, out: tracedJSON{eventJSON: eventOf(e), Trace: []stepJSON{}, Deliveries: []deliveryJSON{}}}
		if err := t.event(c.UserContext(), e, &it); err != nil {
			return err
		}
		return c.JSON(fiber.Map{"data": t.out})
	}
	if found, err := s.Peers.forward(c, nodeOf(id)); found || err != nil {
		return err
	}
	return relay.Errorf(relay.KindNotFound, "event %s", id)
}

// trace is one being put together.
type trace struct {
	*Surface
	out  tracedJSON
	seen []string // the messages whose deliveries are in it
}

func (t *trace) add(at time.Time, step, message, text string) {
	t.out.Trace = append(t.out.Trace, stepJSON{At: stampOrNil(at), Step: step, Message: message, Text: text})
}

// event begins with the receipt and goes on with every message.
func (t *trace) event(ctx context.Context, e event.Event, it *intake.Item) error {
	from := "from " + e.Source
	if it.Entry.Account != 0 {
		from += fmt.Sprintf(", by account %d", it.Entry.Account)
	}
	t.add(e.ReceivedAt, "received", "", from+"; safe on disk")
	switch e.State {
	case event.Pending:
		t.add(time.Time{}, "waits", "", "has not been processed yet")
		return nil
	case event.Quarantined, event.Unrouted:
		t.add(time.Time{}, string(e.State), "", e.Reason)
	}
	if e.Kind != event.SMS || t.Tracing.Messages == nil {
		return nil
	}
	found, is, err := t.Tracing.Messages(it)
	if is != "" {
		t.add(time.Time{}, "read", "", is)
	}
	if err != nil && relay.KindOf(err) == relay.KindUnavailable {
		return err
	}
	for _, m := range found {
		if err := t.message(ctx, m); err != nil {
			return err
		}
	}
	slices.SortStableFunc(t.out.Deliveries, func(a, b deliveryJSON) int { return cmp.Compare(a.CreatedAt, b.CreatedAt) })
	return nil
}

// message follows one message to its deliveries.
func (t *trace) message(ctx context.Context, m inbound.Message) error {
	t.add(time.Time{}, "read", m.ID, fmt.Sprintf("from %s to %s, coding %d", m.From, m.To, m.Coding))
	fate, err := t.Tracing.Follow(ctx, m)
	if err != nil {
		return err
	}
	switch p := fate.Part; {
	case fate.DuplicateOf != "":
		t.add(time.Time{}, "duplicate", m.ID, "the carrier handed over the same as "+fate.DuplicateOf)
		return nil
	case p != nil && fate.Whole == "":
		t.add(time.Time{}, "joined", m.ID, fmt.Sprintf("part %d of %d; waits for the others, or nothing is remembered of them", p.Number, p.Total))
	case p != nil:
		t.add(time.Time{}, "joined", m.ID, fmt.Sprintf("part %d of %d of the message %s", p.Number, p.Total, fate.Whole))
	}
	return t.routed(ctx, cmp.Or(fate.Whole, m.ID), fate)
}

// routed shows the deliveries of a message; where there are none, what the
// relays would decide now.
func (t *trace) routed(ctx context.Context, id string, fate inbound.Fate) error {
	if slices.Contains(t.seen, id) {
		return nil
	}
	t.seen = append(t.seen, id)
	ds, err := t.Tracing.Deliveries(ctx, id)
	if err != nil {
		return err
	}
	if len(ds) == 0 && fate.Part == nil {
		t.add(time.Time{}, "routed", id, "no deliveries; as the relays are now: "+cmp.Or(fate.Decision.Outcome, fate.Decision.Reason))
	}
	for _, d := range ds {
		t.add(d.CreatedAt, "routed", id, fmt.Sprintf("relay %s: delivery %s to %s", d.Relay, d.ID, masked(d.Target())))
		for i, a := range d.Attempts {
			text := fmt.Sprintf("delivery %s, attempt %d: %s", d.ID, i+1, attempted(a))
			t.add(a.At, "attempt", id, text)
		}
		text := fmt.Sprintf("delivery %s is %s", d.ID, d.State)
		if d.Reason != "" {
			text += ": " + d.Reason
		}
		if !d.NextAttemptAt.IsZero() {
			text += ", next at " + stamp(d.NextAttemptAt)
		}
		t.add(time.Time{}, "state", id, text)
		t.out.Deliveries = append(t.out.Deliveries, deliveryOf(d))
	}
	return nil
}

// attempted is how an attempt went, in a few words.
func attempted(a outbox.Attempt) string {
	took := a.Duration.Round(time.Millisecond).String()
	if a.Error != "" {
		return a.Error + " after " + took
	}
	return fmt.Sprintf("answered %d after %s", a.Status, took)
}
