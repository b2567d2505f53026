package cdr

import (
	"cmp"
	"context"
	"log/slog"
	"slices"

	"github.com/gofiber/fiber/v2"

	"github.com/penstock/penstock/decoders/cdr"
	"github.com/penstock/penstock/ingest/httpd"
	"github.com/penstock/penstock/ingest/intake"
	"github.com/penstock/penstock/relay/account"
)

// Intake writes an entry to the journal; *intake.Intake implements it.
type Intake interface {
	Accept(ctx context.Context, e *intake.Entry) (id string, err error)
}

// Options are optional settings; the zero value works.
type Options struct {
	BodyLimit int // maximum size of a body in bytes, before and after decompression; 0 means 4 MiB
	Logger    *slog.Logger
}

// Surface is the HTTP interface for switches and SIM operators.
type Surface struct {
	intake    Intake
	bodyLimit int
	logger    *slog.Logger
}

// New returns the surface over the intake of call records.
func New(intake Intake, o Options) *Surface {
	return &Surface{intake: intake, bodyLimit: cmp.Or(o.BodyLimit, 4<<20), logger: cmp.Or(o.Logger, slog.Default())}
}

// The paths. The processor selects the format of a journalled post by its path.
const (
	sipPath = "/inbound/cdr/sip"
	simPath = "/inbound/cdr/sim"
)

// format is the format of the posts to a path.
type format struct {
	path   string
	source func(body []byte) string
	count  func(body []byte) (records int, problems []error)
}

// Mount adds the paths to the app.
func (s *Surface) Mount(app *fiber.App, auth *httpd.Auth) {
	for _, f := range []format{
		{sipPath, cdr.Source, func(b []byte) (int, []error) { found, _, problems := cdr.Parse(b); return len(found), problems }},
		{simPath, cdr.UsageSource, func(b []byte) (int, []error) { found, _, problems := cdr.ParseUsage(b); return len(found), problems }},
	} {
		app.Post(f.path, auth.Require(account.Carrier, httpd.WebhookStyle()), func(c *fiber.Ctx) error { return s.accept(c, f) })
	}
}

// accept parses a post, writes it to the journal and answers. It refuses a post without a valid record,
// unless the values of a well-formed record are impossible (cdr.IsImpossible): they show a fault.
func (s *Surface) accept(c *fiber.Ctx, f format) error {
	body, err := httpd.Body(c, s.bodyLimit)
	if err != nil {
		return err
	}
	records, problems := f.count(body)
	if records == 0 && !slices.ContainsFunc(problems, cdr.IsImpossible) {
		texts := make([]string, len(problems))
		for i, problem := range problems {
			texts[i] = problem.Error()
		}
		if len(texts) == 0 {
			texts = []string{"cdr: body: offset 0: has no records"}
		}
		return httpd.Invalid(c, map[string][]string{"body": texts})
	}
	entry := intake.Entry{
		Account: httpd.AccountOf(c), Source: f.source(body), Path: f.path,
		ContentType: string(c.Request().Header.ContentType()), Body: append([]byte(nil), body...),
	}
	id, err := s.intake.Accept(c.UserContext(), &entry)
	if err != nil {
		return httpd.NotAccepted(c, s.logger, "call records not accepted", err)
	}
	return c.JSON(fiber.Map{"data": fiber.Map{"id": id, "records": records, "refused": len(problems)}})
}
