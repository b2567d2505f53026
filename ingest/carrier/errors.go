package carrier

import (
	"errors"

	"github.com/gofiber/fiber/v2"

	"github.com/penstock/penstock/ingest/httpd"
	"github.com/penstock/penstock/ingest/httpd/params"
	"github.com/penstock/penstock/ingest/intake"
	"github.com/penstock/penstock/relay"
)

// refuse answers for a post that cannot be read.
func refuse(c *fiber.Ctx, err error) error {
	if errors.Is(err, params.ErrSyntax) {
		return httpd.Message(c, fiber.StatusUnprocessableEntity, params.ErrSyntax.Error())
	}
	if relay.KindOf(err) != relay.KindInvalid {
		return err
	}
	return httpd.Invalid(c, relay.FieldsOf(err))
}

// notAccepted answers for a post that the journal did not take. The carrier
// keeps it and comes again.
func (s *Surface) notAccepted(c *fiber.Ctx, err error) error {
	if errors.Is(err, intake.ErrTooLarge) {
		return httpd.ErrBodyTooLarge
	}
	s.logger.ErrorContext(c.UserContext(), "message not accepted", "account", httpd.AccountOf(c), "error", err)
	return httpd.Unavailable(c)
}
