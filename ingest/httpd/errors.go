package httpd

import (
	"errors"
	"maps"

	"github.com/gofiber/fiber/v2"

	"github.com/penstock/penstock/relay"
)

// Answer answers a failed request.
type Answer func(c *fiber.Ctx, err error) error

// Errors maps kinds of errors to the answers of a surface. The app answers all other errors:
// Fiber's errors, errors of back ends that are down, and unexpected errors.
type Errors map[relay.Kind]Answer

// ErrorsOf returns the answers that all surfaces share, overridden by errs.
func ErrorsOf(errs Errors) Errors {
	merged := Errors{
		relay.KindInvalid:         func(c *fiber.Ctx, err error) error { return Invalid(c, relay.FieldsOf(err)) },
		relay.KindNotFound:        Fixed(fiber.StatusNotFound, "Not found."),
		relay.KindUnauthenticated: Fixed(fiber.StatusUnauthorized, "Unauthenticated."),
		relay.KindForbidden:       Fixed(fiber.StatusForbidden, "This action is unauthorised."),
	}
	maps.Copy(merged, errs)
	return merged
}

// Handler calls the next handlers and answers their error.
func (e Errors) Handler(c *fiber.Ctx) error {
	err := c.Next()
	if _, ok := errors.AsType[*fiber.Error](err); ok {
		return err
	}
	if answer, ok := e[relay.KindOf(err)]; ok && err != nil {
		return answer(c, err)
	}
	return err
}

// Fixed returns an Answer with a fixed text.
func Fixed(status int, text string) Answer {
	return func(c *fiber.Ctx, _ error) error { return Message(c, status, text) }
}

// Verbatim returns an Answer with the text of the error.
func Verbatim(status int) Answer {
	return func(c *fiber.Ctx, err error) error { return Message(c, status, err.Error()) }
}

// Empty returns an Answer without a body.
func Empty(status int) Answer {
	return func(c *fiber.Ctx, _ error) error {
		c.Status(status)
		return nil
	}
}

// Invalid answers 422 with the problems of each field.
func Invalid(c *fiber.Ctx, fields map[string][]string) error {
	return c.Status(fiber.StatusUnprocessableEntity).JSON(fiber.Map{"message": "The given data was invalid.", "errors": fields})
}
