package restv2

import (
	"errors"
	"maps"
	"slices"
	"strings"

	"github.com/gofiber/fiber/v2"

	"github.com/penstock/penstock/ingest/httpd"
	"github.com/penstock/penstock/relay"
)

// unauthorised is what who lacks a scope or a permission reads.
const unauthorised = "This action is unauthorised."

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
		return invalid(c, relay.FieldsOf(err))
	case relay.KindNotFound:
		return httpd.Message(c, fiber.StatusNotFound, "Not found.")
	case relay.KindNoCredit:
		return httpd.Message(c, fiber.StatusPaymentRequired, "Insufficient credit.")
	case relay.KindUnauthenticated:
		return httpd.Message(c, fiber.StatusUnauthorized, "Unauthenticated.")
	case relay.KindForbidden:
		return httpd.Message(c, fiber.StatusForbidden, unauthorised)
	case relay.KindConflict:
		return httpd.Message(c, fiber.StatusConflict, "The record was changed by another request.")
	}
	return err // unavailable and unexpected: httpd answers both
}

// invalid names the parameters that failed in errors and says why in message.
func invalid(c *fiber.Ctx, fields map[string][]string) error {
	names := slices.Sorted(maps.Keys(fields))
	var reasons []string
	for _, name := range names {
		reasons = append(reasons, fields[name]...)
	}
	return c.Status(fiber.StatusUnprocessableEntity).JSON(invalidJSON{
		Message: strings.Join(reasons, " "), Errors: strings.Join(names, ", "),
	})
}

// invalidJSON is the answer of the specification's errors section.
type invalidJSON struct {
	Message string `json:"message"`
	Errors  string `json:"errors"` // the failed parameters
}

// problem collects what is wrong with parameters.
type problem map[string][]string

func (p problem) add(field, message string) { p[field] = append(p[field], message) }

// err returns all that is wrong, or nil.
func (p problem) err() error {
	if len(p) == 0 {
		return nil
	}
	return &relay.Error{Kind: relay.KindInvalid, Message: "invalid parameters", Fields: p}
}
