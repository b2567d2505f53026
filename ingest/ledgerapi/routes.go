package ledgerapi

import (
	"errors"
	"log/slog"

	"github.com/gofiber/fiber/v2"

	"github.com/penstock/penstock/ingest/httpd"
	"github.com/penstock/penstock/relay"
	"github.com/penstock/penstock/relay/account"
	"github.com/penstock/penstock/relay/ledger"
)

// Options are optional settings; the zero value works.
type Options struct {
	// PublicURL is what the links of tokens begin with, without a slash at the
	// end.
	PublicURL string
	Logger    *slog.Logger
}

// Surface is the REST operations of ledgers and tokens.
type Surface struct {
	ledgers *ledger.Service
	opts    Options
}

// New returns the surface over the use cases.
func New(s *ledger.Service, o Options) *Surface {
	if o.Logger == nil {
		o.Logger = slog.Default()
	}
	return &Surface{s, o}
}

// Mount adds the operations to the app, in the specification's order, then what
// it calls for beside them.
func (s *Surface) Mount(app *fiber.App, auth *httpd.Auth) {
	style := httpd.IoTStyle()
	style.Credential = httpd.Bearer
	r := app.Group("/ledgers", auth.Require(account.Ledger, style), problems)

	r.Get("/", s.list)
	r.Get("/tokens/:token/history", s.history)
	r.Post("/tokens/metadata", s.annotate)
	r.Post("/tokens/claim", s.claim)
	r.Post("/:ledgerId/tokens", s.generate)
	r.Post("/tokens/validate", s.validate)
	r.Get("/jobs/:jobId", s.job)

	r.Get("/:ledgerId/ca", s.authority)
	r.Get("/:ledgerId/export", s.export)
	app.Get("/t/:token", s.follow)
}

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
		message := "The given data was invalid."
		if e, ok := errors.AsType[*relay.Error](err); ok && e.Message == ledger.InvalidToken {
			message = ledger.InvalidToken
		}
		return c.Status(fiber.StatusUnprocessableEntity).JSON(fiber.Map{"message": message, "errors": relay.FieldsOf(err)})
	case relay.KindNotFound:
		c.Status(fiber.StatusNotFound)
		return nil
	case relay.KindUnauthenticated:
		return httpd.Message(c, fiber.StatusUnauthorized, "Unauthenticated.")
	case relay.KindForbidden:
		return httpd.Message(c, fiber.StatusForbidden, "This action is unauthorised.")
	}
	return err
}
