package restv3

import (
	"github.com/gofiber/fiber/v2"

	"github.com/penstock/penstock/ingest/httpd"
	"github.com/penstock/penstock/ingest/httpd/params"
	"github.com/penstock/penstock/relay/sim"
)

// listSIMs is operation 1.
func (s *Surface) listSIMs(c *fiber.Ctx) error {
	q, err := listing(c, sim.Columns(), sim.Columns())
	if err != nil {
		return err
	}
	found, total, err := s.sims.List(c.UserContext(), httpd.AccountOf(c), q)
	if err != nil {
		return err
	}
	return paged(c, "SIMs found.", q.Page, httpd.Each(found, simOf), total)
}

// getSIM is operation 2.
func (s *Surface) getSIM(c *fiber.Ctx) error {
	one, err := s.sims.Get(c.UserContext(), httpd.AccountOf(c), params.Path(c, "iccid"))
	if err != nil {
		return err
	}
	return done(c, fiber.StatusOK, "SIM found.", simOf(one))
}

// setLimit is operation 6.
func (s *Surface) setLimit(c *fiber.Ctx) error {
	in, err := inputOf(c)
	if err != nil {
		return err
	}
	change := in.limit()
	if err := in.Err(); err != nil {
		return err
	}
	one, err := s.sims.SetLimit(c.UserContext(), httpd.AccountOf(c), params.Path(c, "iccid"), change)
	if err != nil {
		return err
	}
	return done(c, fiber.StatusOK, "Usage limit updated.", limitedOf(one))
}

// limit reads the parameters of a monthly limit.
func (in input) limit() sim.LimitChange {
	c := sim.LimitChange{
		Monthly: in.integer("monthly_usage_limit"), NoMonthly: in.Null("monthly_usage_limit"),
		Warning: in.integer("monthly_usage_limit_warning"), NoWarning: in.Null("monthly_usage_limit_warning"),
	}
	if text := in.Optional("cap_limit"); text != nil {
		c.Cap = new(sim.Cap(*text))
	}
	return c
}
