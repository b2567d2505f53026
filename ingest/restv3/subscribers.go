package restv3

import (
	"github.com/gofiber/fiber/v2"

	"github.com/penstock/penstock/ingest/httpd"
	"github.com/penstock/penstock/ingest/httpd/params"
	"github.com/penstock/penstock/relay/sim"
)

// listSubscribers is operation 24.
func (s *Surface) listSubscribers(c *fiber.Ctx) error {
	columns := sim.SubscriberColumns()
	q, err := listing(c, columns, columns[1:])
	if err != nil {
		return err
	}
	found, total, err := s.sims.ListSubscribers(c.UserContext(), httpd.AccountOf(c), q)
	if err != nil {
		return err
	}
	return paged(c, "Subscribers found.", q.Page, httpd.Each(found, subscriberOf), total)
}

// listSubscriberSIMs is operation 25.
func (s *Surface) listSubscriberSIMs(c *fiber.Ctx) error {
	q, err := listing(c, sim.Columns(), sim.Columns())
	if err != nil {
		return err
	}
	found, total, err := s.sims.SubscriberSIMs(c.UserContext(), httpd.AccountOf(c), params.Path(c, "subscriber"), q)
	if err != nil {
		return err
	}
	return paged(c, "SIMs found.", q.Page, httpd.Each(found, simOf), total)
}

// register is operation 26.
func (s *Surface) register(c *fiber.Ctx) error {
	in, err := inputOf(c)
	if err != nil {
		return err
	}
	who := in.subscriber()
	if err := in.Err(); err != nil {
		return err
	}
	made, err := s.sims.Register(c.UserContext(), httpd.AccountOf(c), who, sim.Required())
	if err != nil {
		return err
	}
	return done(c, fiber.StatusCreated, "Subscriber registered.", subscriberOf(made))
}

// subscriber reads the fields of a subscriber.
func (in input) subscriber() (who sim.Subscriber) {
	for _, f := range who.Fields() {
		*f.Value = in.Text(f.Name)
	}
	return who
}
