package restv3

import (
	"fmt"

	"github.com/gofiber/fiber/v2"

	"github.com/penstock/penstock/ingest/httpd"
	"github.com/penstock/penstock/ingest/httpd/params"
	"github.com/penstock/penstock/relay/sim"
)

// pool reads a new pool or a change to one.
func (i input) pool() sim.PoolChange {
	change := sim.PoolChange{Name: i.Optional("name"), Limit: i.limit()}
	if i.Value("recipients") != nil {
		change.Recipients = new(i.recipients())
	}
	return change
}

// recipients reads an array of objects.
func (i input) recipients() []sim.Recipient {
	list, ok := i.Value("recipients").([]any)
	if !ok {
		i.AddNamed("recipients", "The %s must be an array.")
	}
	recipients := make([]sim.Recipient, len(list))
	for n, v := range list {
		path := fmt.Sprintf("recipients.%d", n)
		members, ok := v.(map[string]any)
		if !ok {
			i.AddNamed(path, "The %s must be an object.")
		}
		item := inputFrom(params.OfObject(members))
		recipients[n] = item.recipient()
		i.AddAll(path+".", item.Problems)
	}
	return recipients
}

// createPool is operation 17.
func (s *Surface) createPool(c *fiber.Ctx) (sim.Pool, error) {
	change, err := read(c, input.pool)
	if err != nil {
		return sim.Pool{}, err
	}
	return s.SIMs.CreatePool(c.UserContext(), httpd.AccountOf(c), change)
}

// removePoolRecipient is operation 20.
func (s *Surface) removePoolRecipient(c *fiber.Ctx) error {
	return nothing(c, s.SIMs.RemovePoolRecipient(c.UserContext(), httpd.AccountOf(c), params.Path(c, "poolId"), params.Path(c, "recipientId")))
}

// iccids reads a list of ICCIDs.
func (i input) iccids() []string { return i.Texts("iccids") }

// attach is operation 21.
func (s *Surface) attach(c *fiber.Ctx) error {
	list, err := read(c, input.iccids)
	if err != nil {
		return err
	}
	if err := s.SIMs.Attach(c.UserContext(), httpd.AccountOf(c), params.Path(c, "poolId"), list); err != nil {
		return err
	}
	return done(c, fiber.StatusCreated, "ICCIDs attached to the pool.", nil)
}

// listPoolSIMs is operation 23.
func (s *Surface) listPoolSIMs(c *fiber.Ctx, q sim.Query) ([]sim.SIM, int, error) {
	return s.SIMs.PoolSIMs(c.UserContext(), httpd.AccountOf(c), params.Path(c, "poolId"), q)
}
