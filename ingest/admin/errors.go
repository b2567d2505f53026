package admin

import (
	"errors"

	"github.com/gofiber/fiber/v2"

	"github.com/penstock/penstock/ingest/httpd"
	"github.com/penstock/penstock/relay"
)

// problems turns errors into this surface's answers, in one place.
func problems(c *fiber.Ctx) error {
	err := c.Next()
	if err == nil {
		return nil
	}
	if _, ok := errors.AsType[*fiber.Error](err); ok {
		return err
	}
	switch relay.KindOf(err) {
	case relay.KindInvalid:
		return c.Status(fiber.StatusUnprocessableEntity).JSON(fiber.Map{
			"message": "The given data was invalid.", "errors": relay.FieldsOf(err),
		})
	case relay.KindNotFound:
		return httpd.Message(c, fiber.StatusNotFound, "Not found.")
	case relay.KindConflict:
		return httpd.Message(c, fiber.StatusConflict, err.Error())
	case relay.KindNoCredit:
		return httpd.Message(c, fiber.StatusPaymentRequired, err.Error())
	case relay.KindUnauthenticated:
		return httpd.Message(c, fiber.StatusUnauthorized, "Unauthenticated.")
	case relay.KindForbidden:
		return httpd.Message(c, fiber.StatusForbidden, "This action is unauthorised.")
	case relay.KindUnavailable:
		c.Set(fiber.HeaderRetryAfter, "5")
		return httpd.Message(c, fiber.StatusServiceUnavailable, err.Error())
	}
	return err
}
