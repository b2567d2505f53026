package restv3

import (
	"github.com/gofiber/fiber/v2"

	"github.com/penstock/penstock/ingest/httpd"
	"github.com/penstock/penstock/ingest/httpd/params"
	"github.com/penstock/penstock/relay/sim"
)

// recipientIn reads e-mail address and number of a recipient.
func recipientIn(c *fiber.Ctx) (r sim.Recipient, err error) {
	in, err := inputOf(c)
	if err != nil {
		return r, err
	}
	r = sim.Recipient{Email: in.Text("email"), Number: in.Text("number")}
	return r, in.Err()
}

// addRecipient is operation 9.
func (s *Surface) addRecipient(c *fiber.Ctx) (sim.SIM, error) {
	r, err := recipientIn(c)
	if err != nil {
		return sim.SIM{}, err
	}
	return s.SIMs.AddRecipient(c.UserContext(), httpd.AccountOf(c), params.Path(c, "iccid"), r)
}

// removeRecipient is operation 10.
func (s *Surface) removeRecipient(c *fiber.Ctx) error {
	err := s.SIMs.RemoveRecipient(c.UserContext(), httpd.AccountOf(c), params.Path(c, "simRecipientId"))
	return nothing(c, err)
}

// nothing answers 204.
func nothing(c *fiber.Ctx, err error) error {
	if err != nil {
		return err
	}
	c.Status(fiber.StatusNoContent)
	return nil
}

// addPoolRecipient is operation 19.
func (s *Surface) addPoolRecipient(c *fiber.Ctx) (sim.Pool, error) {
	r, err := recipientIn(c)
	if err != nil {
		return sim.Pool{}, err
	}
	return s.SIMs.AddPoolRecipient(c.UserContext(), httpd.AccountOf(c), params.Path(c, "poolId"), r)
}

// removePoolRecipient is operation 20.
func (s *Surface) removePoolRecipient(c *fiber.Ctx) error {
	err := s.SIMs.RemovePoolRecipient(c.UserContext(), httpd.AccountOf(c), params.Path(c, "poolId"), params.Path(c, "recipientId"))
	return nothing(c, err)
}
