package restv3

import (
	"fmt"

	"github.com/gofiber/fiber/v2"

	"github.com/penstock/penstock/ingest/httpd"
	"github.com/penstock/penstock/ingest/httpd/params"
	"github.com/penstock/penstock/relay/sim"
)

func (s *Surface) getSIM(c *fiber.Ctx) (sim.SIM, error) {
	found, err := s.SIMs.Get(c.UserContext(), httpd.AccountOf(c), params.Path(c, "iccid"))
	if !httpd.SeesSecrets(c) {
		found.Codes = sim.Codes{}
	}
	return found, err
}

// withoutCodes clears the codes of the SIMs of a list for those who may not see them.
func withoutCodes(find func(*fiber.Ctx, sim.Query) ([]sim.SIM, int, error)) func(*fiber.Ctx, sim.Query) ([]sim.SIM, int, error) {
	return func(c *fiber.Ctx, q sim.Query) ([]sim.SIM, int, error) {
		found, total, err := find(c, q)
		for i := range found {
			if !httpd.SeesSecrets(c) {
				found[i].Codes = sim.Codes{}
			}
		}
		return found, total, err
	}
}

func (i input) limit() sim.LimitChange {
	c := sim.LimitChange{
		Monthly: i.Integer("monthly_usage_limit"), NoMonthly: i.Null("monthly_usage_limit"),
		Warning: i.Integer("monthly_usage_limit_warning"), NoWarning: i.Null("monthly_usage_limit_warning"),
	}
	if text := i.Optional("cap_limit"); text != nil {
		c.Cap = new(sim.Cap(*text))
	}
	return c
}

func (i input) recipient() sim.Recipient {
	return sim.Recipient{Email: i.Text("email"), Number: i.Text("number")}
}

func (i input) subscriber() (subscriber sim.Subscriber) {
	for _, f := range subscriber.Fields() {
		*f.Value = i.Text(f.Name)
	}
	return subscriber
}

func (i input) pool() sim.PoolChange {
	change := sim.PoolChange{Name: i.Optional("name"), Limit: i.limit()}
	if i.Value("recipients") != nil {
		change.Recipients = new(i.recipients())
	}
	return change
}

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

func (i input) iccids() []string { return i.Texts("iccids") }

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
