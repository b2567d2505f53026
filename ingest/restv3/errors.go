package restv3

import (
	"errors"

	"github.com/gofiber/fiber/v2"

	"github.com/penstock/penstock/relay"
	"github.com/penstock/penstock/relay/sim"
)

// later is the fixed text of 424.
const later = "Service temporarily unavailable. Please try again later."

// problems turns errors into this surface's answers, in one place. It stands
// before the credentials are looked at, which the store may fail to do.
func problems(c *fiber.Ctx) error {
	err := c.Next()
	if err == nil {
		return nil
	}
	if e, ok := errors.AsType[*fiber.Error](err); ok {
		return refused(c, e.Code, e.Message)
	}
	status, text := statusOf(relay.KindOf(err))
	if fields := relay.FieldsOf(err); len(fields) > 0 {
		return invalid(c, fields)
	}
	if r, ok := errors.AsType[*sim.Refusal](err); ok {
		text = r.Error()
	}
	if status == 0 {
		return err // unexpected: httpd answers and logs
	}
	return refused(c, status, text)
}

// statusOf is the table of the kinds of error; 0 for what is unexpected.
func statusOf(k relay.Kind) (status int, text string) {
	switch k {
	case relay.KindInvalid:
		return fiber.StatusUnprocessableEntity, "The request is invalid."
	case relay.KindNotFound:
		return fiber.StatusNotFound, "Not found."
	case relay.KindUnauthenticated:
		return fiber.StatusUnauthorized, "Unauthenticated."
	case relay.KindForbidden:
		return fiber.StatusForbidden, "This action is unauthorised."
	case relay.KindConflict:
		return fiber.StatusUnprocessableEntity, "The record was changed by another request."
	case relay.KindUnavailable, relay.KindNoCredit:
		return fiber.StatusFailedDependency, later
	}
	return 0, ""
}

// bareKey marks operations whose answers have no success.
type bareKey struct{}

// bare stands before the operations on call records and usage.
func bare(c *fiber.Ctx) error {
	c.Locals(bareKey{}, true)
	return c.Next()
}

func isBare(c *fiber.Ctx) bool { return c.Locals(bareKey{}) != nil }

// refusalJSON is an answer that refuses.
type refusalJSON struct {
	Success *bool               `json:"success,omitempty"`
	Message string              `json:"message"`
	Errors  map[string][]string `json:"errors,omitempty"`
}

// refused answers with a message alone.
func refused(c *fiber.Ctx, status int, message string) error {
	return c.Status(status).JSON(refusalJSON{Success: new(false), Message: message})
}

// invalid names what is wrong with parameters.
func invalid(c *fiber.Ctx, fields map[string][]string) error {
	c.Status(fiber.StatusUnprocessableEntity)
	if isBare(c) {
		return c.JSON(refusalJSON{Message: "The given data was invalid.", Errors: fields})
	}
	return c.JSON(refusalJSON{Success: new(false), Message: "Validation error.", Errors: fields})
}
