package restv3

import (
	"fmt"

	"github.com/gofiber/fiber/v2"

	"github.com/penstock/penstock/ingest/httpd"
	"github.com/penstock/penstock/relay"
	"github.com/penstock/penstock/relay/sim"
)

// poolIn reads a new pool or a change to one.
func poolIn(c *fiber.Ctx) (change sim.PoolChange, err error) {
	in, err := inputOf(c)
	if err != nil {
		return change, err
	}
	p := relay.Problems{}
	change = sim.PoolChange{Name: in.given(p, "name"), Limit: in.limit(p)}
	if in["recipients"] != nil {
		change.Recipients = new(in.recipients(p))
	}
	return change, p.Err()
}

// recipients reads an array of objects.
func (in input) recipients(p relay.Problems) []sim.Recipient {
	list, ok := in["recipients"].([]any)
	if !ok {
		p.AddNamed("recipients", "The %s must be an array.")
	}
	out := make([]sim.Recipient, len(list))
	for i, v := range list {
		at, one, inner := fmt.Sprintf("recipients.%d", i), object(v), relay.Problems{}
		if one == nil {
			p.AddNamed(at, "The %s must be an object.")
		}
		out[i] = sim.Recipient{Email: one.text(inner, "email"), Number: one.text(inner, "number")}
		p.AddAll(at+".", inner)
	}
	return out
}

// createPool is operation 17.
func (s *Surface) createPool(c *fiber.Ctx) error {
	change, err := poolIn(c)
	if err != nil {
		return err
	}
	p, err := s.sims.CreatePool(c.UserContext(), httpd.AccountOf(c), change)
	if err != nil {
		return err
	}
	return done(c, fiber.StatusCreated, "Pool created.", poolOf(p))
}

// changePool is operation 18.
func (s *Surface) changePool(c *fiber.Ctx) error {
	change, err := poolIn(c)
	if err != nil {
		return err
	}
	p, err := s.sims.ChangePool(c.UserContext(), httpd.AccountOf(c), param(c, "poolId"), change)
	if err != nil {
		return err
	}
	return done(c, fiber.StatusOK, "Pool updated.", poolOf(p))
}

// iccidsIn reads a list of ICCIDs.
func iccidsIn(c *fiber.Ctx) ([]string, error) {
	in, err := inputOf(c)
	if err != nil {
		return nil, err
	}
	p := relay.Problems{}
	list := in.texts(p, "iccids")
	return list, p.Err()
}

// attach is operation 21.
func (s *Surface) attach(c *fiber.Ctx) error {
	list, err := iccidsIn(c)
	if err != nil {
		return err
	}
	if err := s.sims.Attach(c.UserContext(), httpd.AccountOf(c), param(c, "poolId"), list); err != nil {
		return err
	}
	return done(c, fiber.StatusCreated, "ICCIDs attached to the pool.", nil)
}

// detach is operation 22.
func (s *Surface) detach(c *fiber.Ctx) error {
	list, err := iccidsIn(c)
	if err != nil {
		return err
	}
	p, err := s.sims.Detach(c.UserContext(), httpd.AccountOf(c), param(c, "poolId"), list)
	if err != nil {
		return err
	}
	return done(c, fiber.StatusOK, "ICCIDs detached from the pool.", poolOf(p))
}

// listPoolSIMs is operation 23.
func (s *Surface) listPoolSIMs(c *fiber.Ctx) error {
	q, err := listing(c, sim.Columns(), sim.Columns())
	if err != nil {
		return err
	}
	found, total, err := s.sims.PoolSIMs(c.UserContext(), httpd.AccountOf(c), param(c, "poolId"), q)
	if err != nil {
		return err
	}
	return paged(c, "SIMs found.", q.Page, each(found, simOf), total)
}
