package admin

import (
	"github.com/gofiber/fiber/v2"

	"github.com/penstock/penstock/ingest/httpd"
	"github.com/penstock/penstock/relay"
)

// answers has the surface's texts of errors: to those who run the gateway, more than the
// others do.
func answers() httpd.Errors {
	return httpd.ErrorsOf(httpd.Errors{
		relay.KindForbidden: httpd.Verbatim(fiber.StatusForbidden),
		relay.KindConflict:  httpd.Verbatim(fiber.StatusConflict),
		relay.KindNoCredit:  httpd.Verbatim(fiber.StatusPaymentRequired),
		relay.KindUnavailable: func(c *fiber.Ctx, err error) error {
			c.Set(fiber.HeaderRetryAfter, "5")
			if c.UserContext().Err() != nil {
				return httpd.Message(c, fiber.StatusServiceUnavailable, "The request takes longer than it may: name an account or a shorter time.")
			}
			if !principalOf(c).Role.SeesFaults() {
				return httpd.Unavailable(c)
			}
			return httpd.Message(c, fiber.StatusServiceUnavailable, err.Error())
		},
	})
}
