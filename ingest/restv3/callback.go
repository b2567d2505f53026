package restv3

import (
	"github.com/gofiber/fiber/v2"

	"github.com/penstock/penstock/ingest/httpd"
)

// setCallback is operation 27.
func (s *Surface) setCallback(c *fiber.Ctx) error {
	in, err := inputOf(c)
	if err != nil {
		return err
	}
	url := in.Text("callback_url")
	if err := in.Err(); err != nil {
		return err
	}
	return nothing(c, s.sims.SetCallback(c.UserContext(), httpd.AccountOf(c), url))
}
