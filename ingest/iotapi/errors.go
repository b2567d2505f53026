package iotapi

import (
	"errors"
	"strings"

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
		c.Status(fiber.StatusNotFound)
		return nil
	case relay.KindConflict:
		return httpd.Message(c, fiber.StatusUnprocessableEntity, "Device has already been claimed.")
	case relay.KindUnauthenticated:
		return httpd.Message(c, fiber.StatusUnauthorized, "Unauthenticated.")
	case relay.KindForbidden:
		return httpd.Message(c, fiber.StatusForbidden, "This action is unauthorised.")
	}
	return err
}

// invalidDevice is how an unknown device is answered where the specification
// says so.
func invalidDevice(c *fiber.Ctx, err error) error {
	if relay.KindOf(err) == relay.KindNotFound {
		return httpd.Message(c, fiber.StatusUnprocessableEntity, "Invalid Device.")
	}
	return err
}

// body reads what an operation is given: a JSON body, parameters of the query,
// or both; the body wins.
func body(c *fiber.Ctx, to any) error {
	if len(c.Request().Body()) == 0 && len(c.Request().URI().QueryString()) > 0 {
		return fromQuery(c, to)
	}
	media, _, _ := strings.Cut(c.Get(fiber.HeaderContentType), ";")
	if !strings.EqualFold(strings.TrimSpace(media), fiber.MIMEApplicationJSON) {
		return fiber.NewError(fiber.StatusUnsupportedMediaType, "Content-Type must be application/json.")
	}
	if err := decode(c, to); err != nil {
		return err
	}
	return fromQuery(c, to)
}
