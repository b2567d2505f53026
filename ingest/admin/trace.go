package admin

import (
	"slices"
	"strings"

	"github.com/gofiber/fiber/v2"

	"github.com/penstock/penstock/ingest/httpd"
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
	return tracedJSON{
		eventJSON: eventOf(t.Event), Deliveries: httpd.Each(t.Deliveries, deliveryOf),
		Trace: httpd.Each(t.Steps, func(s inbound.Step) stepJSON {
			return stepJSON{At: formatTimeOrNil(s.At), Step: s.Name, Message: s.Message, Text: s.Text}
		}),
	}
}

// getEvent shows one event with its trace. That of another gateway is requested from that
// one.
func (s *Surface) getEvent(c *fiber.Ctx) error {
	id := strings.Clone(c.Params("event"))
	t, err := s.traced(c, id)
	if err != nil {
		return err
	}
	if !sees(c, t.Account) {
		return relay.Errorf(relay.KindNotFound, "event %s", id)
	}
	t.Deliveries = slices.DeleteFunc(t.Deliveries, func(d deliveryJSON) bool { return !sees(c, d.Account) })
	t.hide(c)
	return c.JSON(fiber.Map{"data": t})
}

// traced returns an event of this gateway, or of the one that its id names.
func (s *Surface) traced(c *fiber.Ctx, id string) (tracedJSON, error) {
	trace, err := s.Trace(c.UserContext(), id)
	if err == nil {
		return tracedOf(&trace), nil
	}
	if relay.KindOf(err) != relay.KindNotFound {
		return tracedJSON{}, err
	}
	t, found, err := s.Peers.tracedAt(c, nodeOf(id))
	if err == nil && !found {
		err = relay.Errorf(relay.KindNotFound, "event %s", id)
	}
	return t, err
}
