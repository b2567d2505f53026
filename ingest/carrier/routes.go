package carrier

import (
	"cmp"
	"context"
	"log/slog"

	"github.com/gofiber/fiber/v2"

	"github.com/penstock/penstock/ingest/httpd"
	"github.com/penstock/penstock/ingest/intake"
	"github.com/penstock/penstock/relay/account"
)

// Intake writes an entry to the journal; *intake.Intake does.
type Intake interface {
	Accept(ctx context.Context, e *intake.Entry) (id string, err error)
}

// Options are what may be chosen; the zero value works.
type Options struct {
	BodyLimit int // bytes, also of an inflated body; 0 means 1 MiB
	Logger    *slog.Logger
}

// Surface is the paths that carriers post to.
type Surface struct {
	intake    Intake
	adapters  map[string]Adapter
	bodyLimit int
	logger    *slog.Logger
}

// New returns the surface over the intake of messages.
func New(in Intake, o Options) *Surface {
	return &Surface{
		intake: in, adapters: Adapters(),
		bodyLimit: cmp.Or(o.BodyLimit, 1<<20), logger: cmp.Or(o.Logger, slog.Default()),
	}
}

// Mount adds the paths to the app: one per adapter, with or without the source
// that names a token.
func (s *Surface) Mount(app fiber.Router, auth *httpd.Auth) {
	inbound := app.Group("/inbound/sms", auth.Require(account.Carrier, httpd.WebhookStyle()))
	for name, a := range s.adapters {
		handler := s.take(name, a)
		for _, path := range []string{"/" + name, "/" + name + "/:source"} {
			inbound.Head(path, head)
			inbound.Add(fiber.MethodGet, path, handler)
			inbound.Add(fiber.MethodPost, path, handler)
		}
	}
}

// head refuses what fiber would serve as a GET: a GET hands a message over, and
// who asks for the head of it means to change nothing.
func head(c *fiber.Ctx) error {
	c.Set(fiber.HeaderAllow, "GET, POST")
	c.Status(fiber.StatusMethodNotAllowed)
	return nil
}
