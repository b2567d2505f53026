package restv3

import (
	"github.com/gofiber/fiber/v2"

	"github.com/penstock/penstock/ingest/httpd"
	"github.com/penstock/penstock/ingest/httpd/params"
	"github.com/penstock/penstock/relay/sim"
)

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
	in, err := inputOf(c)
	if err != nil {
		return sim.Subscriber{}, err
	}
	who := in.subscriber()
	if err := in.Err(); err != nil {
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
