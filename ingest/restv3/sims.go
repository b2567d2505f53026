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

// limit reads the parameters of a monthly limit.
func (in input) limit() sim.LimitChange {
	c := sim.LimitChange{
		Monthly: in.Integer("monthly_usage_limit"), NoMonthly: in.Null("monthly_usage_limit"),
		Warning: in.Integer("monthly_usage_limit_warning"), NoWarning: in.Null("monthly_usage_limit_warning"),
	}
	if text := in.Optional("cap_limit"); text != nil {
		c.Cap = new(sim.Cap(*text))
	}
	return c
}

// recipient reads e-mail address and number of a recipient.
func (in input) recipient() sim.Recipient {
	return sim.Recipient{Email: in.Text("email"), Number: in.Text("number")}
}

// removeRecipient is operation 10.
func (s *Surface) removeRecipient(c *fiber.Ctx) error {
	return nothing(c, s.SIMs.RemoveRecipient(c.UserContext(), httpd.AccountOf(c), params.Path(c, "simRecipientId")))
}

// listSubscribers is operation 24.
func (s *Surface) listSubscribers(c *fiber.Ctx, q sim.Query) ([]sim.Subscriber, int, error) {
	return s.SIMs.ListSubscribers(c.UserContext(), httpd.AccountOf(c), q)
}

// listSubscriberSIMs is operation 25.
func (s *Surface) listSubscriberSIMs(c *fiber.Ctx, q sim.Query) ([]sim.SIM, int, error) {
	return s.SIMs.SubscriberSIMs(c.UserContext(), httpd.AccountOf(c), params.Path(c, "subscriber"), q)
}

// register is operation 26.
func (s *Surface) register(c *fiber.Ctx) (sim.Subscriber, error) {
	who, err := read(c, input.subscriber)
	if err != nil {
		return sim.Subscriber{}, err
	}
	return s.SIMs.Register(c.UserContext(), httpd.AccountOf(c), who, sim.Required())
}

// subscriber reads the fields of a subscriber.
func (in input) subscriber() (who sim.Subscriber) {
	for _, f := range who.Fields() {
		*f.Value = in.Text(f.Name)
	}
	return who
}
