package restv2

import (
	"github.com/gofiber/fiber/v2"

	"github.com/penstock/penstock/ingest/httpd"
	"github.com/penstock/penstock/ingest/httpd/params"
	"github.com/penstock/penstock/relay/inbound"
)

// listActions answers with the actions that a kind of relay may have.
func listActions(k inbound.Kind) fiber.Handler {
	return func(c *fiber.Ctx) error {
		page, err := pageOf(c)
		if err != nil {
			return err
		}
		return list(c, page, inbound.Actions(k))
	}
}

func (s *Surface) listRelays(k inbound.Kind) fiber.Handler {
	return func(c *fiber.Ctx) error {
		in := listInput(c)
		number, page := in.Text(numberField(k)), in.page()
		if err := in.Err(); err != nil {
			return err
		}
		found, err := s.deps.Relays.List(c.UserContext(), httpd.AccountOf(c), k, number)
		if err != nil {
			return err
		}
		return list(c, page, httpd.Each(found, func(r inbound.Relay) relayJSON { return relayOf(c, r) }))
	}
}

func (s *Surface) getRelay(k inbound.Kind) fiber.Handler {
	return func(c *fiber.Ctx) error {
		r, err := s.deps.Relays.Get(c.UserContext(), httpd.AccountOf(c), k, params.Path(c, "relay"))
		if err != nil {
			return err
		}
		return data(c, relayOf(c, r))
	}
}

func (s *Surface) patchRelay(k inbound.Kind) fiber.Handler {
	return func(c *fiber.Ctx) error {
		change, err := changeOf(c)
		if err != nil {
			return err
		}
		r, err := s.deps.Relays.Change(c.UserContext(), httpd.AccountOf(c), k, params.Path(c, "relay"), change)
		if err != nil {
			return err
		}
		return data(c, relayOf(c, r))
	}
}

// changeOf reads action and parameters from the body or the query, and filter,
// our extension, of which null and "" remove it.
func changeOf(c *fiber.Ctx) (change inbound.Change, err error) {
	in, err := inputOf(c)
	if err != nil {
		return change, err
	}
	change.Action.Name = in.Required("action")
	change.Action.Parameters = in.Texts("parameters")
	if _, given := in.Get("filter"); given {
		change.Filter = new(in.Text("filter"))
	}
	return change, in.Err()
}
