package carrier

import (
	"errors"

	"github.com/gofiber/fiber/v2"

	"github.com/penstock/penstock/ingest/httpd"
	"github.com/penstock/penstock/ingest/intake"
)

// take returns the handler of an adapter: read, journal, answer.
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
			return s.notAccepted(c, err)
		}
		return a.Answer(c, id)
	}
}

// isNoMessage reports whether a post is fine and no message: it is journalled
// and acknowledged like one, so that the carrier does not come again.
func isNoMessage(err error) bool {
	_, ok := errors.AsType[notMessage](err)
	return ok
}

// entry copies a post out of the request, whose memory fiber uses again.
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
