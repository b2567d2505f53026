package admin

import (
	"context"
	"log/slog"
	"time"

	"github.com/gofiber/fiber/v2"
	"github.com/prometheus/client_golang/prometheus"

	"github.com/penstock/penstock/ingest/httpd"
	"github.com/penstock/penstock/ingest/intake"
	"github.com/penstock/penstock/ingest/uplink"
	"github.com/penstock/penstock/relay/credit"
	"github.com/penstock/penstock/relay/inbound"
	"github.com/penstock/penstock/relay/iot"
	"github.com/penstock/penstock/relay/message"
	"github.com/penstock/penstock/relay/outbox"
)

// Deps are what the surface shows and does.
type Deps struct {
	// Node is this gateway; the ids of its events begin with it. Peers are the
	// others; nil: there are none.
	Node       string
	Peers      *Peers
	Inventory  *Inventory
	Intakes    []*intake.Intake
	Deliveries outbox.Store
	Dispatcher outbox.Dispatcher
	Breakers   outbox.Breakers
	Credit     credit.Store
	Messages   message.Archive
	// Explain says what would become of a message.
	Explain func(ctx context.Context, m inbound.Message) (inbound.Explanation, error)
	Tracing Tracing
	// Preview returns the request of a delivery as it would go out now, and why
	// it would not be made, "" if it would.
	Preview func(ctx context.Context, d outbox.Delivery) (req outbox.Request, refused string, err error)
	// IoT tries decoders, Bench looks at journalled frames, Types names what
	// sensors measure.
	IoT   *iot.Service
	Bench *uplink.Bench
	Types uplink.Types
	// Recover processes the journal again for a database that was restored, and
	// returns how many events that were.
	Recover func(ctx context.Context) (int, error)
	// Backends answers for each back end by name.
	Backends []Backend
	Metrics  prometheus.Gatherer
	Now      func() time.Time
	Logger   *slog.Logger
}

// Backend is something the gateway needs, and how to ask whether it works.
type Backend struct {
	Name string
	// Note says what kind it is: embedded, simulator, redis 7.0.15.
	Note  string
	Check func(ctx context.Context) error
	// Optional says that the gateway is ready without it: one carrier of several
	// that is away must not keep the others' messages from it.
	Optional bool
}

// Surface is the operator's operations.
type Surface struct{ Deps }

// New returns the surface.
func New(d Deps) *Surface { return &Surface{Deps: d} }

// Mount adds the operations to the app.
func (s *Surface) Mount(app *fiber.App, auth *httpd.Auth) {
	app.Get("/healthz", s.alive)
	app.Get("/readyz", s.ready)
	app.Get("/metrics", s.metrics())

	r := app.Group("/admin", auth.RequireAdmin, problems)
	r.Put("/inventory", s.putInventory)
	r.Get("/inventory", s.getInventory)
	r.Post("/recover", s.recover)
	r.Get("/gateways", s.listGateways)
	r.Delete("/gateways/:node", s.forgetGateway)
	r.Get("/events", s.listEvents)
	r.Get("/events/:event", s.getEvent)
	r.Post("/events/replay", s.replayEvents)
	r.Get("/deliveries", s.listDeliveries)
	r.Post("/deliveries/replay", s.replayDeliveries)
	r.Post("/decoders/try", s.tryDecoder)
	r.Get("/decoders/:decoder_id", s.getDecoder)
	r.Post("/relays/explain", s.explainRelay)
	r.Get("/breakers", s.listBreakers)
	r.Delete("/breakers/:endpoint", s.closeBreaker)
	r.Get("/credit", s.listCredit)
	r.Get("/messages", s.listMessages)
	r.Post("/messages/resend", s.resendMessages)
}
