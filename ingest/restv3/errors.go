package restv3

import (
	"errors"

	"github.com/gofiber/fiber/v2"

	"github.com/penstock/penstock/ingest/httpd"
	"github.com/penstock/penstock/relay"
	"github.com/penstock/penstock/relay/sim"
)

const unavailableText = "Service temporarily unavailable. Please try again later."

// problems answers the errors of the handlers after it. Mount also adds it before the check of
// credentials, in which the store may fail.
func problems() fiber.Handler {
	answers := httpd.Errors{
		relay.KindInvalid:         refusal(fiber.StatusUnprocessableEntity, "The request is invalid."),
		relay.KindNotFound:        refusal(fiber.StatusNotFound, "Not found."),
		relay.KindUnauthenticated: refusal(fiber.StatusUnauthorized, "Unauthenticated."),
		relay.KindForbidden:       refusal(fiber.StatusForbidden, "This action is unauthorised."),
		relay.KindConflict:        refusal(fiber.StatusUnprocessableEntity, "The record was changed by another request."),
		relay.KindUnavailable:     refusal(fiber.StatusFailedDependency, unavailableText),
		relay.KindNoCredit:        refusal(fiber.StatusFailedDependency, unavailableText),
	}
	return func(c *fiber.Ctx) error {
		err := answers.Handler(c)
		if e, ok := errors.AsType[*fiber.Error](err); ok {
			return refused(c, e.Code, e.Message)
		}
		return err // httpd logs and answers an unexpected error
	}
}

// refusal returns an Answer with the problems of parameters and 422, else with status and the text
// of a sim.Refusal, else with status and text.
func refusal(status int, text string) httpd.Answer {
	return func(c *fiber.Ctx, err error) error {
		if fields := relay.FieldsOf(err); len(fields) > 0 {
			return invalid(c, fields)
		}
		if r, ok := errors.AsType[*sim.Refusal](err); ok {
			return refused(c, status, r.Error())
		}
		return refused(c, status, text)
	}
}

type bareKey struct{}

// bare omits the field success of validation errors. It comes before the handlers of call records
// and usage.
func bare(c *fiber.Ctx) error {
	c.Locals(bareKey{}, true)
	return c.Next()
}

type refusalJSON struct {
	Success *bool               `json:"success,omitempty"`
	Message string              `json:"message"`
	Errors  map[string][]string `json:"errors,omitempty"`
}

func refused(c *fiber.Ctx, status int, message string) error {
	return c.Status(status).JSON(refusalJSON{Success: new(false), Message: message})
}

func invalid(c *fiber.Ctx, fields map[string][]string) error {
	c.Status(fiber.StatusUnprocessableEntity)
	if c.Locals(bareKey{}) != nil {
		return c.JSON(refusalJSON{Message: "The given data was invalid.", Errors: fields})
	}
	return c.JSON(refusalJSON{Success: new(false), Message: "Validation error.", Errors: fields})
}
