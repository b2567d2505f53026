package carrier

import (
	"errors"

	"github.com/gofiber/fiber/v2"

	"github.com/penstock/penstock/ingest/httpd"
	"github.com/penstock/penstock/ingest/httpd/params"
	"github.com/penstock/penstock/ingest/intake"
	"github.com/penstock/penstock/relay"
)

// take returns the handler of an adapter: it parses, journals and answers.
func (s *Surface) take(name string, a Adapter) fiber.Handler {
	return func(c *fiber.Ctx) error {
		entry, err := s.entry(c, name)
		if err != nil {
			return err
		}
		if found, err := a.Parse(&entry); err != nil && len(found) == 0 && !isNoMessage(err) {
			return refuse(c, err)
		}
		id, err := s.intake.Accept(c.UserContext(), &entry)
		if err != nil {
			return httpd.NotAccepted(c, s.logger, "message not accepted", err)
		}
		return a.Answer(c, id)
	}
}

// isNoMessage reports whether a valid post is not a message: it is journalled and
// acknowledged like one, so that the carrier does not repeat it.
func isNoMessage(err error) bool {
	_, ok := errors.AsType[notMessage](err)
	return ok
}

// entry copies a post from the request, whose memory fiber reuses.
func (s *Surface) entry(c *fiber.Ctx, name string) (intake.Entry, error) {
	body, err := httpd.Body(c, s.bodyLimit)
	if err != nil {
		return intake.Entry{}, err
	}
	return intake.Entry{
		Account: httpd.AccountOf(c), Source: name, Path: string(c.Request().URI().Path()),
		Query:       string(c.Request().URI().QueryString()),
		ContentType: string(c.Request().Header.ContentType()),
		Body:        append([]byte(nil), body...),
	}, nil
}

// refuse answers a post that cannot be parsed.
func refuse(c *fiber.Ctx, err error) error {
	if errors.Is(err, params.ErrSyntax) {
		return httpd.Message(c, fiber.StatusUnprocessableEntity, params.ErrSyntax.Error())
	}
	if relay.KindOf(err) != relay.KindInvalid {
		return err
	}
	return httpd.Invalid(c, relay.FieldsOf(err))
}
