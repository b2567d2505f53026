package restv3

import (
	"errors"

	"github.com/gofiber/fiber/v2"

	"github.com/penstock/penstock/ingest/httpd"
	"github.com/penstock/penstock/relay"
	"github.com/penstock/penstock/relay/sim"
)

const unavailableText = "Service temporarily unavailable. Please try again later."

// errorHandler answers the errors of the handlers after it. Mount also adds it before the check of
// credentials, in which the store may fail.
func errorHandler() fiber.Handler {
	answers := httpd.Errors{
		relay.KindInvalid:         errorAnswer(fiber.StatusUnprocessableEntity, "The request is invalid."),
		relay.KindNotFound:        errorAnswer(fiber.StatusNotFound, "Not found."),
		relay.KindUnauthenticated: errorAnswer(fiber.StatusUnauthorized, "Unauthenticated."),
		relay.KindForbidden:       errorAnswer(fiber.StatusForbidden, "This action is unauthorised."),
		relay.KindConflict:        errorAnswer(fiber.StatusUnprocessableEntity, "The record was changed by another request."),
		relay.KindUnavailable:     errorAnswer(fiber.StatusFailedDependency, unavailableText),
		relay.KindNoCredit:        errorAnswer(fiber.StatusFailedDependency, unavailableText),
	}
	return func(c *fiber.Ctx) error {
		err := answers.Handler(c)
		if e, ok := errors.AsType[*fiber.Error](err); ok {
			return sendError(c, e.Code, e.Message)
		}
		return err // httpd logs and answers an unexpected error
	}
}

// errorAnswer returns an Answer with the problems of parameters and 422, else with status and the text
// of a sim.Refusal, else with status and text.
func errorAnswer(status int, text string) httpd.Answer {
	return func(c *fiber.Ctx, err error) error {
		if fields := relay.FieldsOf(err); len(fields) > 0 {
			return sendProblems(c, fields)
		}
		if r, ok := errors.AsType[*sim.Refusal](err); ok {
			return sendError(c, status, r.Error())
		}
		return sendError(c, status, text)
	}
}

type omitSuccessKey struct{}

// omitSuccess omits the field success of validation errors. It comes before the handlers that request
// reports.
func omitSuccess(c *fiber.Ctx) error {
	c.Locals(omitSuccessKey{}, true)
	return c.Next()
}

type errorJSON struct {
	Success *bool               `json:"success,omitempty"`
	Message string              `json:"message"`
	Errors  map[string][]string `json:"errors,omitempty"`
}

func sendError(c *fiber.Ctx, status int, message string) error {
	return c.Status(status).JSON(errorJSON{Success: new(false), Message: message})
}

func sendProblems(c *fiber.Ctx, fields map[string][]string) error {
	c.Status(fiber.StatusUnprocessableEntity)
	if c.Locals(omitSuccessKey{}) != nil {
		return c.JSON(errorJSON{Message: "The given data was invalid.", Errors: fields})
	}
	return c.JSON(errorJSON{Success: new(false), Message: "Validation error.", Errors: fields})
}
