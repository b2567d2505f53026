package restv3

import (
	"github.com/gofiber/fiber/v2"

	"github.com/penstock/penstock/ingest/httpd"
	"github.com/penstock/penstock/relay"
)

// setCallback is operation 27.
func (s *Surface) setCallback(c *fiber.Ctx) error {
	in, err := inputOf(c)
	if err != nil {
		return err
	}
	p := relay.Problems{}
	url := in.text(p, "callback_url")
	if err := p.Err(); err != nil {
		return err
	}
	return nothing(c, s.sims.SetCallback(c.UserContext(), httpd.AccountOf(c), url))
}
