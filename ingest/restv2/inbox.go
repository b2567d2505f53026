package restv2

import (
	"github.com/gofiber/fiber/v2"

	"github.com/penstock/penstock/ingest/httpd"
	"github.com/penstock/penstock/ingest/httpd/params"
)

// readInbox lists what a virtual number's inbox holds, oldest first.
func (s *Surface) readInbox(c *fiber.Ctx) error {
	page, err := pageOf(c)
	if err != nil {
		return err
	}
	inboxMessages, total, err := s.deps.Relays.ReadInbox(c.UserContext(), httpd.AccountOf(c), params.Path(c, "relay"), page.Offset(), page.PerPage)
	if err != nil {
		return err
	}
	return paged(c, page, httpd.Each(inboxMessages, inboxMessageOf), total)
}

// acknowledge removes a message that its reader has.
func (s *Surface) acknowledge(c *fiber.Ctx) error {
	err := s.deps.Relays.Acknowledge(c.UserContext(), httpd.AccountOf(c), params.Path(c, "relay"), params.Path(c, "message"))
	if err != nil {
		return err
	}
	return c.SendStatus(fiber.StatusNoContent)
}
