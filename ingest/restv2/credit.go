package restv2

import (
	"github.com/gofiber/fiber/v2"

	"github.com/penstock/penstock/ingest/httpd"
)

// getCredit tells how many credits the account has.
func (s *Surface) getCredit(c *fiber.Ctx) error {
	n, err := s.deps.Balance(c.UserContext(), httpd.AccountOf(c))
	if err != nil {
		return err
	}
	return data(c, fiber.Map{"credit": n})
}
