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

// recipient reads e-mail address and number of a recipient.
func (i input) recipient() sim.Recipient {
	return sim.Recipient{Email: i.Text("email"), Number: i.Text("number")}
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
	subscriber, err := read(c, input.subscriber)
	if err != nil {
		return sim.Subscriber{}, err
	}
	return s.SIMs.Register(c.UserContext(), httpd.AccountOf(c), subscriber, sim.Required())
}

// subscriber reads the fields of a subscriber.
func (i input) subscriber() (subscriber sim.Subscriber) {
	for _, f := range subscriber.Fields() {
		*f.Value = i.Text(f.Name)
	}
	return subscriber
}
