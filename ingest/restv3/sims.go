package restv3

import (
	"github.com/gofiber/fiber/v2"

	"github.com/penstock/penstock/ingest/httpd"
	"github.com/penstock/penstock/ingest/httpd/params"
	"github.com/penstock/penstock/relay/sim"
)

// listSIMs is operation 1.
func (s *Surface) listSIMs(c *fiber.Ctx, q sim.Query) ([]sim.SIM, int, error) {
	return s.SIMs.List(c.UserContext(), httpd.AccountOf(c), q)
}

// getSIM is operation 2.
func (s *Surface) getSIM(c *fiber.Ctx) (sim.SIM, error) {
	return s.SIMs.Get(c.UserContext(), httpd.AccountOf(c), params.Path(c, "iccid"))
}

// setLimit is operation 6.
func (s *Surface) setLimit(c *fiber.Ctx) (sim.SIM, error) {
	in, err := inputOf(c)
	if err != nil {
		return sim.SIM{}, err
	}
	change := in.limit()
	if err := in.Err(); err != nil {
		return sim.SIM{}, err
	}
	return s.SIMs.SetLimit(c.UserContext(), httpd.AccountOf(c), params.Path(c, "iccid"), change)
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
