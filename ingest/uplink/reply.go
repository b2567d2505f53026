package uplink

import (
	"github.com/gofiber/fiber/v2"

	"github.com/penstock/penstock/decoders/netserver"
)

// needsOwnReply reports whether a sender cannot handle the usual response body:
// Helium and Everynet treat it as a downlink, so does Sigfox if it requests one, and
// UbiBot retries until it receives its text.
func needsOwnReply(r *request) bool {
	switch r.sender {
	case netserver.Helium, netserver.Everynet, netserver.UbiBot:
		return true
	case netserver.Sigfox:
		return netserver.AwaitsDownlink(r.post)
	}
	return false
}

// reply sends the success response of a sender: an empty body, UbiBot's text, or
// 204 for a Sigfox device that requests a downlink, as there is none to send.
func reply(c *fiber.Ctx, r *request) error {
	switch r.sender {
	case netserver.UbiBot:
		return c.Status(fiber.StatusOK).SendString("SUCCESS")
	case netserver.Sigfox:
		if netserver.AwaitsDownlink(r.post) {
			return c.SendStatus(fiber.StatusNoContent)
		}
	}
	c.Status(fiber.StatusOK)
	return nil
}

// options answers Everynet, which periodically checks whether the URL accepts its
// messages.
func (s *Surface) options(c *fiber.Ctx) error {
	c.Set(fiber.HeaderAllow, "GET, POST, PUT, OPTIONS")
	if webhookName(c.Path()) == "generic" {
		c.Set(fiber.HeaderAllow, "POST, OPTIONS")
	}
	return c.SendStatus(fiber.StatusNoContent)
}
