package admin

import (
	"strings"

	"github.com/gofiber/fiber/v2"

	"github.com/penstock/penstock/relay"
	"github.com/penstock/penstock/relay/inbound"
)

// tracedJSON is an event and its way through the gateway.
type tracedJSON struct {
	eventJSON
	Trace      []stepJSON     `json:"trace"`
	Deliveries []deliveryJSON `json:"deliveries"`
}

// stepJSON is one thing that happened to an event.
type stepJSON struct {
	At      *string `json:"at"`      // null when no time is kept
	Step    string  `json:"step"`    // received, read, duplicate, joined, rule, routed, attempt
	Message string  `json:"message"` // its id; empty for the whole event
	Text    string  `json:"text"`
}

func tracedOf(t *inbound.Trace) tracedJSON {
	out := tracedJSON{
		eventJSON: eventOf(t.Event), Trace: make([]stepJSON, len(t.Steps)), Deliveries: make([]deliveryJSON, len(t.Deliveries)),
	}
	for i, s := range t.Steps {
		out.Trace[i] = stepJSON{At: formatTimeOrNil(s.At), Step: s.Name, Message: s.Message, Text: s.Text}
	}
	for i, d := range t.Deliveries {
		out.Deliveries[i] = deliveryOf(d)
	}
	return out
}

// getEvent shows one event with its trace. That of another gateway is asked of
// that one.
func (s *Surface) getEvent(c *fiber.Ctx) error {
	id := strings.Clone(c.Params("event"))
	t, err := s.Trace(c.UserContext(), id)
	if err == nil {
		return c.JSON(fiber.Map{"data": tracedOf(&t)})
	}
	if relay.KindOf(err) != relay.KindNotFound {
		return err
	}
	if found, err := s.Peers.forward(c, nodeOf(id)); found || err != nil {
		return err
	}
	return relay.Errorf(relay.KindNotFound, "event %s", id)
}
