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
	// PublicURL is the URL before the path of tokens' links, without a slash at the end.
	PublicURL string
	Logger    *slog.Logger
}

// Surface implements the REST operations of ledgers and tokens.
type Surface struct {
	ledgers *ledger.Service
	opts    Options
}

// New returns the surface.
func New(s *ledger.Service, o Options) *Surface {
	if o.Logger == nil {
		o.Logger = slog.Default()
	}
	return &Surface{s, o}
}

// Mount adds the operations to the app: first the operations of the specification in its order,
// then the extensions.
func (s *Surface) Mount(app *fiber.App, auth *httpd.Auth) {
	r := app.Group("/ledgers", auth.Require(account.Ledger, httpd.APIStyle(httpd.Bearer)), answers().Handler)

	r.Get("/", httpd.Search, s.list)
	r.Get("/tokens/:token/history", httpd.Search, s.history)
	r.Post("/tokens/metadata", s.annotate)
	r.Post("/tokens/claim", s.claim)
	r.Post("/:ledgerId/tokens", s.generate)
	r.Post("/tokens/validate", s.validate)
	r.Get("/jobs/:jobId", s.job)

	r.Get("/:ledgerId/ca", s.authority)
	r.Get("/:ledgerId/export", httpd.Export, s.export)
	app.Get("/t/:token", s.follow)
}

// answers returns the surface's answers to errors.
func answers() httpd.Errors {
	return httpd.ErrorsOf(httpd.Errors{
		relay.KindInvalid: func(c *fiber.Ctx, err error) error {
			if e, ok := errors.AsType[*relay.Error](err); ok && e.Message == ledger.InvalidToken {
				return c.Status(fiber.StatusUnprocessableEntity).JSON(fiber.Map{"message": ledger.InvalidToken, "errors": e.Fields})
			}
			return httpd.Invalid(c, relay.FieldsOf(err))
		},
		relay.KindNotFound: httpd.Empty(fiber.StatusNotFound),
	})
}
