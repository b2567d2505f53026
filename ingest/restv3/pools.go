package restv3

import (
	"fmt"

	"github.com/gofiber/fiber/v2"

	"github.com/penstock/penstock/ingest/httpd"
	"github.com/penstock/penstock/ingest/httpd/params"
	"github.com/penstock/penstock/relay/sim"
)

// poolIn reads a new pool or a change to one.
func poolIn(c *fiber.Ctx) (change sim.PoolChange, err error) {
	in, err := inputOf(c)
	if err != nil {
		return change, err
	}
	change = sim.PoolChange{Name: in.Optional("name"), Limit: in.limit()}
	if in.Value("recipients") != nil {
		change.Recipients = new(in.recipients())
	}
	return change, in.Err()
}

// recipients reads an array of objects.
func (in input) recipients() []sim.Recipient {
	list, ok := in.Value("recipients").([]any)
	if !ok {
		in.AddNamed("recipients", "The %s must be an array.")
	}
	out := make([]sim.Recipient, len(list))
	for i, v := range list {
		at := fmt.Sprintf("recipients.%d", i)
		members, ok := v.(map[string]any)
		if !ok {
			in.AddNamed(at, "The %s must be an object.")
		}
		one := inputFrom(params.OfObject(members))
		out[i] = sim.Recipient{Email: one.Text("email"), Number: one.Text("number")}
		in.AddAll(at+".", one.Problems)
	}
	return out
}

// createPool is operation 17.
func (s *Surface) createPool(c *fiber.Ctx) (sim.Pool, error) {
	change, err := poolIn(c)
	if err != nil {
		return sim.Pool{}, err
	}
	return s.SIMs.CreatePool(c.UserContext(), httpd.AccountOf(c), change)
}

// changePool is operation 18.
func (s *Surface) changePool(c *fiber.Ctx) (sim.Pool, error) {
	change, err := poolIn(c)
	if err != nil {
		return sim.Pool{}, err
	}
	return s.SIMs.ChangePool(c.UserContext(), httpd.AccountOf(c), params.Path(c, "poolId"), change)
}

// iccidsIn reads a list of ICCIDs.
func iccidsIn(c *fiber.Ctx) ([]string, error) {
	in, err := inputOf(c)
	if err != nil {
		return nil, err
	}
	return in.Texts("iccids"), in.Err()
}

// attach is operation 21.
func (s *Surface) attach(c *fiber.Ctx) error {
	list, err := iccidsIn(c)
	if err != nil {
		return err
	}
	if err := s.SIMs.Attach(c.UserContext(), httpd.AccountOf(c), params.Path(c, "poolId"), list); err != nil {
		return err
	}
	return done(c, fiber.StatusCreated, "ICCIDs attached to the pool.", nil)
}

// detach is operation 22.
func (s *Surface) detach(c *fiber.Ctx) (sim.Pool, error) {
	list, err := iccidsIn(c)
	if err != nil {
		return sim.Pool{}, err
	}
	return s.SIMs.Detach(c.UserContext(), httpd.AccountOf(c), params.Path(c, "poolId"), list)
}

// listPoolSIMs is operation 23.
func (s *Surface) listPoolSIMs(c *fiber.Ctx, q sim.Query) ([]sim.SIM, int, error) {
	return s.SIMs.PoolSIMs(c.UserContext(), httpd.AccountOf(c), params.Path(c, "poolId"), q)
}
