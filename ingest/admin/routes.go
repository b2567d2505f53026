package admin

import (
	"cmp"
	"context"
	"log/slog"
	"time"

	"github.com/gofiber/fiber/v2"
	"github.com/gofiber/fiber/v2/middleware/adaptor"
	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/promhttp"

	"github.com/penstock/penstock/ingest/admin/traffic"
	"github.com/penstock/penstock/ingest/httpd"
	"github.com/penstock/penstock/ingest/intake"
	"github.com/penstock/penstock/relay"
	"github.com/penstock/penstock/relay/account"
	"github.com/penstock/penstock/relay/audit"
	"github.com/penstock/penstock/relay/cache"
	"github.com/penstock/penstock/relay/credit"
	"github.com/penstock/penstock/relay/db"
	"github.com/penstock/penstock/relay/inbound"
	"github.com/penstock/penstock/relay/inventory"
	"github.com/penstock/penstock/relay/iot"
	"github.com/penstock/penstock/relay/job"
	"github.com/penstock/penstock/relay/ledger"
	"github.com/penstock/penstock/relay/message"
	"github.com/penstock/penstock/relay/outbox"
	"github.com/penstock/penstock/relay/replay"
	"github.com/penstock/penstock/relay/rule"
	"github.com/penstock/penstock/relay/sim"
	"github.com/penstock/penstock/relay/usage"
	"github.com/penstock/penstock/relay/user"
)

// Deps are the surface's dependencies.
type Deps struct {
	// Node is this gateway; the ids of its events begin with it. Peers are the
	// others; nil: there are none.
	Node       string
	Peers      *Peers
	Accounts   Accounts
	Inventory  *inventory.Service
	Intakes    []*intake.Intake
	Deliveries *outbox.Store
	Breakers   *cache.Breakers
	Relays     *inbound.RelayService
	Credit     *credit.Store
	Messages   *message.Store
	// Waits explains why nothing leaves for a number at the moment, "" where nothing is in
	// the way; nil has no reasons.
	Waits func(number string) string
	// ReadMessage reads a message to explain from a request's body; a mistake is
	// relay.KindInvalid and names the field.
	ReadMessage func(body []byte) (inbound.Message, error)
	// Explain says what would become of a message.
	Explain func(ctx context.Context, m inbound.Message) (inbound.Explanation, error)
	// Trace returns the path of an event of this gateway.
	Trace func(ctx context.Context, id string) (inbound.Trace, error)
	// IoT tries decoders, Inspector examines journalled frames, Types names what sensors
	// measure.
	IoT       *iot.Service
	Inspector Inspector
	Types     *iot.Store
	// Effects counts what replayed events have led to.
	Effects *replay.Store
	// Rules are the rules and alarms of accounts.
	Rules *rule.Service
	// SIMs, their pools and what they used; jobs, and ledgers with their tokens.
	SIMs    *sim.SIMs
	Pools   *sim.Pools
	Usage   *usage.Store
	Jobs    *job.Store
	Ledgers *ledger.Service
	// Recover processes the journal again for a database that was restored, and
	// returns how many events that were.
	Recover func(ctx context.Context) (Recovered, error)
	// AcceptServer accepts the PostgreSQL server that was refused, and returns which one;
	// empty if none was refused. It returns a Conflict error if another one can be used.
	// nil accepts none.
	AcceptServer func(ctx context.Context) (string, error)
	// NewerServer compares the PostgreSQL server of another gateway with this one's and
	// returns the newer.
	NewerServer func(theirs db.Server) db.Server
	// Backends answers for each back end by name.
	Backends []Backend
	Metrics  prometheus.Gatherer
	// Program is the part of the status without the back ends.
	Program Program
	// Traffic has the counts of the last day; nil keeps nothing.
	Traffic *traffic.Ring
	Now     func() time.Time

	// Users sign in, Provider is another way to; nil: with passwords only. Audit has
	// what was changed.
	Users    *user.Service
	Provider Provider
	Audit    *audit.Store
	// PublicURL is the gateway's URL for browsers.
	PublicURL string
	Logger    *slog.Logger // nil means slog.Default
}

// Accounts finds accounts.
type Accounts interface {
	Account(ctx context.Context, id relay.AccountID) (account.Account, error)
	AccountByName(ctx context.Context, name string) (account.Account, error)
	Accounts(ctx context.Context) ([]account.Account, error)
}

// Inspector examines journalled frames and stores nothing.
type Inspector interface {
	replay.Posts
	// Recent returns the last frames of a device, newest first.
	Recent(ctx context.Context, acct relay.AccountID, d iot.Device, limit int) ([]iot.Arrival, error)
}

// Backend is something the gateway needs, and the check whether it works.
type Backend struct {
	Name string
	// Note says what kind it is: embedded, simulator, redis 7.0.15.
	Note  string
	Check func(ctx context.Context) error
	// Optional reports that the gateway is ready without it: one carrier of several that is
	// away must not keep the others' messages from it.
	Optional bool
}

// Surface is the operator's operations.
type Surface struct {
	Deps
	auth       *httpd.Auth
	operations []operation
	watch      *watch
	startedAt  time.Time
}

// New returns the surface.
func New(d Deps) *Surface {
	d.Logger = cmp.Or(d.Logger, slog.Default())
	s := &Surface{Deps: d, watch: newWatch(d.Backends, d.Now)}
	s.operations, s.startedAt = s.allOperations(), s.watch.now()
	return s
}

// Mount adds the operations to the app.
func (s *Surface) Mount(app *fiber.App, auth *httpd.Auth) {
	s.auth = auth
	app.Get("/healthz", func(c *fiber.Ctx) error { return c.JSON(fiber.Map{"status": "alive"}) })
	app.Get("/readyz", s.ready)
	app.Get("/metrics", httpd.NoBody, adaptor.HTTPHandler(promhttp.HandlerFor(s.Metrics, promhttp.HandlerOpts{})))

	// Errors of a handler become answers before they are recorded, errors of the record after.
	r := app.Group("/admin", s.authorize, answers().Handler, s.record, answers().Handler)
	for _, o := range s.operations {
		if o.method == fiber.MethodGet {
			r.Get(o.path, o.handle) // and HEAD
		} else {
			r.Add(o.method, o.path, o.handle)
		}
	}

	// Requests between gateways are answered from this gateway's journals alone.
	internal := app.Group("/internal", s.authorizePeer, answers().Handler)
	internal.Post("/server", s.exchangeServer)
	internal.Get("/events", s.withSelection(s.listEvents))
	internal.Get("/events/:event", s.getEvent)
	internal.Post("/events/replay", s.record, answers().Handler, s.withSelection(s.replayEvents))
}

// answers has the surface's texts of errors: to those who run the gateway, more than the
// others do.
func answers() httpd.Errors {
	return httpd.ErrorsOf(httpd.Errors{
		relay.KindForbidden: httpd.Verbatim(fiber.StatusForbidden),
		relay.KindConflict:  httpd.Verbatim(fiber.StatusConflict),
		relay.KindNoCredit:  httpd.Verbatim(fiber.StatusPaymentRequired),
		relay.KindUnavailable: func(c *fiber.Ctx, err error) error {
			c.Set(fiber.HeaderRetryAfter, "5")
			if c.UserContext().Err() != nil {
				return httpd.Message(c, fiber.StatusServiceUnavailable, "The request takes longer than it may: name an account or a shorter time.")
			}
			if !principalOf(c).Role.SeesFaults() {
				return httpd.Unavailable(c)
			}
			return httpd.Message(c, fiber.StatusServiceUnavailable, err.Error())
		},
	})
}
