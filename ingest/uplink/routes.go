package uplink

import (
	"time"

	"github.com/gofiber/fiber/v2"

	"github.com/penstock/penstock/ingest/httpd"
	"github.com/penstock/penstock/ingest/intake"
	"github.com/penstock/penstock/relay/account"
)

// Surface is the webhooks.
type Surface struct {
	intake    *intake.Intake
	waiters   *waiters
	types     Types
	bodyLimit int
	patience  time.Duration
	logger    logger
}

// Mount adds the webhooks to the app, in the specification's order.
func (s *Surface) Mount(app *fiber.App, auth *httpd.Auth) {
	hooks := app.Group("/webhooks", auth.Require(account.Webhook, httpd.WebhookStyle()))
	hooks.Post("/generic", s.generic)
	hooks.Post("/generic/*", s.generic) // :deviceId, which may hold a slash
	for _, sender := range []string{"lorawan", "community", "lpwan", "sensor-vendor"} {
		hooks.Post("/"+sender, s.frame)
		hooks.Post("/"+sender+"/*", s.frame)
	}
}
