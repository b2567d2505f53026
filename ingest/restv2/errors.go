package restv2

import (
	"maps"
	"slices"
	"strings"

	"github.com/gofiber/fiber/v2"

	"github.com/penstock/penstock/ingest/httpd"
	"github.com/penstock/penstock/relay"
)

// answers is what the surface says of errors.
func answers() httpd.Errors {
	return httpd.ErrorsOf(httpd.Errors{
		relay.KindInvalid:  func(c *fiber.Ctx, err error) error { return invalid(c, relay.FieldsOf(err)) },
		relay.KindNoCredit: httpd.Fixed(fiber.StatusPaymentRequired, "Insufficient credit."),
		relay.KindConflict: httpd.Fixed(fiber.StatusConflict, "The record was changed by another request."),
	})
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
