package carrier

import (
	"bytes"
	"cmp"
	"context"
	"errors"
	"log/slog"
	"strings"
	"time"

	"github.com/gofiber/fiber/v2"
	"github.com/gofiber/fiber/v2/utils"

	"github.com/penstock/penstock/ingest/httpd"
	"github.com/penstock/penstock/ingest/httpd/params"
	"github.com/penstock/penstock/ingest/intake"
	"github.com/penstock/penstock/relay"
	"github.com/penstock/penstock/relay/account"
)

// Intake writes an entry to the journal. *intake.Intake implements it.
type Intake interface {
	Accept(ctx context.Context, e *intake.Entry) (id string, err error)
}

// Options configures a Surface; the zero value works.
type Options struct {
	BodyLimit int // maximum size of a decompressed body, in bytes; 0 means 1 MiB
	// PublicURL is the URL at which carriers reach the gateway, without a slash at the end.
	// Signatures of some carriers cover the URL.
	PublicURL string
	Logger    *slog.Logger     // nil means slog.Default
	Now       func() time.Time // nil means time.Now
}

// The prefixes of the paths of messages and receipts.
const (
	messagePath = "/inbound/sms/"
	receiptPath = "/inbound/dlr/"
)

// Surface is the HTTP interface for carriers.
type Surface struct {
	messages Intake
	adapters map[string]Adapter
	opts     Options
}

// New returns a surface that writes inbound messages to messages.
func New(messages Intake, o Options) *Surface {
	o.BodyLimit, o.Logger = cmp.Or(o.BodyLimit, 1<<20), cmp.Or(o.Logger, slog.Default())
	if o.Now == nil {
		o.Now = time.Now
	}
	return &Surface{messages: messages, adapters: Adapters(), opts: o}
}

// Mount adds the paths of the adapters to the app. A path may end with a source: of an adapter that
// verifies signatures it names a token, of others it keeps the ids of several carriers apart.
func (s *Surface) Mount(app *fiber.App, auth *httpd.Auth) {
	group := app.Group(strings.TrimSuffix(messagePath, "/"))
	for name, a := range s.adapters {
		parse := func(e *intake.Entry) error {
			if messages, err := a.Parse(e); len(messages) == 0 && !isNotMessage(err) {
				return err
			}
			return nil
		}
		admit := auth.Require(account.Carrier, authStyle())
		if a.Verify != nil {
			admit = auth.RequireSigned(account.Carrier, signedStyle(), httpd.Signature{
				Source: func(c *fiber.Ctx) string { return utils.CopyString(c.Params("source")) },
				Verify: func(c *fiber.Ctx, secret string) error {
					signed, err := s.signedOf(c)
					if err != nil {
						return err
					}
					return a.Verify(signed, secret)
				},
				Logger: s.opts.Logger,
			})
		}
		mount(group, name, admit, s.acceptPost(s.messages, name, a, parse))
	}
	group.Use(auth.Require(account.Carrier, authStyle())) // unauthenticated clients get 401, not 404
}

// mount adds the paths of a kind, without and with a source. It refuses HEAD, which fiber
// would handle as a GET, because HEAD must not submit a message.
func mount(group fiber.Router, kind string, admit, handler fiber.Handler) {
	refuseHead := func(c *fiber.Ctx) error {
		c.Set(fiber.HeaderAllow, "GET, POST")
		c.Status(fiber.StatusMethodNotAllowed)
		return nil
	}
	for _, path := range []string{"/" + kind, "/" + kind + "/:source"} {
		group.Head(path, admit, refuseHead)
		group.Get(path, admit, handler)
		group.Post(path, admit, handler)
	}
}

// authStyle returns WebhookStyle with a Basic challenge, which Twilio needs to send credentials.
func authStyle() httpd.Style {
	s := httpd.WebhookStyle()
	refuse := s.Unauthenticated
	s.Unauthenticated = func(c *fiber.Ctx) error {
		c.Set(fiber.HeaderWWWAuthenticate, `Basic realm="penstock"`)
		return refuse(c)
	}
	return s
}

// signedStyle returns the style for carriers that sign. It ignores a carrier's JWT in Authorization,
// which is not a token of the gateway.
func signedStyle() httpd.Style {
	s := authStyle()
	credential := s.Credential
	s.Credential = func(c *fiber.Ctx) string {
		if isJWT(httpd.Bearer(c)) {
			return ""
		}
		return credential(c)
	}
	return s
}

// acceptPost returns a handler that validates a post with parse, writes it to the journal and
// answers with the carrier's adapter.
func (s *Surface) acceptPost(in Intake, name string, a Adapter, parse func(*intake.Entry) error) fiber.Handler {
	return func(c *fiber.Ctx) error {
		body, err := httpd.Body(c, s.opts.BodyLimit)
		if err != nil {
			return err
		}
		// Copy the post from the request, whose memory fiber reuses.
		entry := intake.Entry{
			Account: httpd.AccountOf(c), Source: name, Path: string(c.Request().URI().Path()),
			Query:       string(c.Request().URI().QueryString()),
			ContentType: string(c.Request().Header.ContentType()),
			Body:        bytes.Clone(body),
		}
		switch err := parse(&entry); {
		case errors.Is(err, params.ErrSyntax):
			return httpd.Message(c, fiber.StatusUnprocessableEntity, params.ErrSyntax.Error())
		case relay.KindOf(err) == relay.KindInvalid:
			return httpd.Invalid(c, relay.FieldsOf(err))
		case err != nil:
			return err
		}
		id, err := in.Accept(c.UserContext(), &entry)
		if err != nil {
			return httpd.NotAccepted(c, s.opts.Logger, "message not accepted", err)
		}
		return a.Answer(c, id)
	}
}

func isNotMessage(err error) bool {
	_, ok := errors.AsType[notMessage](err)
	return ok
}
