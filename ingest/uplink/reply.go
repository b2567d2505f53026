package uplink

import (
	"github.com/gofiber/fiber/v2"

	"github.com/penstock/penstock/decoders/netserver"
)

// particular tells a sender that cannot bear a body of ours: Helium and
// Everynet take it for a downlink, so does Sigfox where it asks for one, and
// UbiBot sends again until it reads its word.
func particular(r *reception) bool {
	switch r.sender {
	case netserver.Helium, netserver.Everynet, netserver.UbiBot:
		return true
	case netserver.Sigfox:
		return netserver.AsksDownlink(r.post)
	}
	return false
}

// reply is the success that each sender can bear: nothing, but UbiBot's word,
// and 204 for a Sigfox device that listens, to which there is nothing to send.
func reply(c *fiber.Ctx, r *reception) error {
	switch r.sender {
	case netserver.UbiBot:
		return c.Status(fiber.StatusOK).SendString("SUCCESS")
	case netserver.Sigfox:
		if netserver.AsksDownlink(r.post) {
			return c.SendStatus(fiber.StatusNoContent)
		}
	}
	c.Status(fiber.StatusOK)
	return nil
}

// options answers Everynet, which asks from time to time whether the address
// still takes its messages.
func (s *Surface) options(c *fiber.Ctx) error {
	c.Set(fiber.HeaderAllow, "GET, POST, PUT, OPTIONS")
	if hint(c.Path()) == "generic" {
		c.Set(fiber.HeaderAllow, "POST, OPTIONS")
	}
	return c.SendStatus(fiber.StatusNoContent)
}
