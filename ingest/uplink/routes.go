package uplink

import (
	"cmp"
	"context"
	"log/slog"
	"time"

	"github.com/gofiber/fiber/v2"

	"github.com/penstock/penstock/decoders/netserver"
	"github.com/penstock/penstock/ingest/httpd"
	"github.com/penstock/penstock/ingest/intake"
	"github.com/penstock/penstock/relay/account"
	"github.com/penstock/penstock/relay/iot"
)

// Types provides sensor types for the response of the generic webhook.
type Types interface {
	SensorTypes(ctx context.Context) (map[string]iot.SensorType, error)
}

// Options configures a Surface; the zero value works.
type Options struct {
	BodyLimit int // maximum size of a decompressed body, in bytes; 0 means 1 MiB
	// AnswerTimeout is the time for which the generic webhook waits for the updated sensors
	// before it answers with an empty list; 0 means 3 s.
	AnswerTimeout time.Duration
	Logger        *slog.Logger
	Now           func() time.Time // for signatures; nil means time.Now
}

// Surface provides the webhooks.
type Surface struct {
	intake        *intake.Intake
	waiters       *waiters
	types         Types
	bodyLimit     int
	answerTimeout time.Duration
	now           func() time.Time
	logger        *slog.Logger
}

// New returns a surface that writes posts to in. The generic webhook waits for the results of p, the
// processor of in.
func New(in *intake.Intake, p *Processor, types Types, o Options) *Surface {
	if o.Now == nil {
		o.Now = time.Now
	}
	return &Surface{
		intake: in, waiters: p.waiters, types: types, now: o.Now, logger: cmp.Or(o.Logger, slog.Default()),
		bodyLimit: cmp.Or(o.BodyLimit, 1<<20), answerTimeout: cmp.Or(o.AnswerTimeout, 3*time.Second),
	}
}

// vendorWebhooks returns the names of the webhooks of network servers and vendors.
func vendorWebhooks() []string { return []string{"lorawan", "community", "lpwan", "sensor-vendor"} }

// Mount adds the webhooks to the app, in the specification's order. Sigfox also calls with
// GET and PUT; Everynet sends OPTIONS, without a token.
func (s *Surface) Mount(app *fiber.App, auth *httpd.Auth) {
	for _, name := range append([]string{"generic"}, vendorWebhooks()...) {
		app.Options("/webhooks/"+name, s.options)
		app.Options("/webhooks/"+name+"/*", s.options)
	}
	hooks := app.Group("/webhooks", auth.RequireSigned(account.Webhook, httpd.WebhookStyle(), httpd.Signature{
		Source: func(c *fiber.Ctx) string { return sourceIn(c.Path()) }, Verify: s.verify, Logger: s.logger,
	}))
	hooks.Post("/generic", s.acceptGeneric)
	hooks.Post("/generic/*", s.acceptGeneric) // a device id, which may contain a slash
	for _, name := range vendorWebhooks() {
		for _, path := range []string{"/" + name, "/" + name + "/*"} {
			hooks.Post(path, s.acceptPost)
			hooks.Put(path, s.acceptPost)
			hooks.Head(path, refuseHead) // fiber would handle HEAD as a GET
			hooks.Get(path, s.acceptPost)
		}
	}
}

// refuseHead refuses HEAD: a GET posts a frame, and HEAD must change nothing.
func refuseHead(c *fiber.Ctx) error {
	c.Set(fiber.HeaderAllow, "GET, POST, PUT")
	c.Status(fiber.StatusMethodNotAllowed)
	return nil
}

// needsOwnReply reports whether a sender cannot handle the default response body. Helium and
// Everynet, and Sigfox after a request for a downlink, treat a body as a downlink. UbiBot repeats a
// post until the body is "SUCCESS".
func needsOwnReply(r *request) bool {
	switch r.sender {
	case netserver.Helium, netserver.Everynet, netserver.UbiBot:
		return true
	case netserver.Sigfox:
		return netserver.AwaitsDownlink(r.post)
	}
	return false
}

// reply sends the success response of a sender: an empty body, UbiBot's "SUCCESS", or
// 204 (no downlink) for a Sigfox device that requests a downlink.
func reply(c *fiber.Ctx, r *request) error {
	switch r.sender {
	case netserver.UbiBot:
		return c.Status(fiber.StatusOK).SendString("SUCCESS")
	case netserver.Sigfox:
		if netserver.AwaitsDownlink(r.post) {
			return c.SendStatus(fiber.StatusNoContent)
		}
	}
	c.Status(fiber.StatusOK)
	return nil
}

// options answers OPTIONS, with which Everynet periodically checks the URL.
func (s *Surface) options(c *fiber.Ctx) error {
	c.Set(fiber.HeaderAllow, "GET, POST, PUT, OPTIONS")
	if webhookName(c.Path()) == "generic" {
		c.Set(fiber.HeaderAllow, "POST, OPTIONS")
	}
	return c.SendStatus(fiber.StatusNoContent)
}
