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
	// Node is the name of this gateway and the prefix of the ids of its events. Peers are the
	// other gateways; nil means none.
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
	// WaitReason returns the reason why messages to a number are currently not submitted, or "".
	WaitReason func(number string) string
	// ReadMessage parses the message of a body for Explain. Its error is relay.KindInvalid
	// and names the field.
	ReadMessage func(body []byte) (inbound.Message, error)
	// ReadPost parses the messages of a journalled post. notice describes a post without
	// messages.
	ReadPost func(item *intake.Item) (messages []inbound.Message, notice string, err error)
	// Explain predicts the outcome of a message.
	Explain func(ctx context.Context, m inbound.Message) (inbound.Explanation, error)
	// Trace returns an event of this gateway with the steps of its processing.
	Trace func(ctx context.Context, id string) (inbound.Trace, error)
	// IoT tries decoders, Inspector examines journalled frames, and Types stores sensor types.
	IoT       *iot.Service
	Inspector Inspector
	Types     *iot.Store
	// Effects counts the deliveries and alarms of replayed events.
	Effects *replay.Store
	// Rules are the rules and alarms of accounts.
	Rules   *rule.Service
	SIMs    *sim.SIMs
	Pools   *sim.Pools
	Usage   *usage.Store
	Jobs    *job.Store
	Ledgers *ledger.Service
	// Recover processes the journal again after the database was restored.
	Recover func(ctx context.Context) (RecoveryResult, error)
	// AcceptServer accepts the refused PostgreSQL server and returns its name, or "" if no server
	// was refused. It returns a Conflict error if another server can be used. nil accepts no
	// server.
	AcceptServer func(ctx context.Context) (string, error)
	// NewerServer returns the newer of two PostgreSQL servers: the server of another gateway and
	// the server of this gateway.
	NewerServer func(peerServer db.Server) db.Server
	Backends    []Backend
	Metrics     prometheus.Gatherer
	Program     Program
	// Traffic stores the traffic of the last day; nil means that there are no charts.
	Traffic *traffic.Ring
	Now     func() time.Time

	Users    *user.Service
	Provider Provider // nil means that users sign in with passwords only
	Audit    *audit.Store
	// Operations are the operations that the audit log may have, for their summaries.
	Operations []httpd.Operation
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

// Backend is a server or an embedded store that the gateway uses.
type Backend struct {
	Name string
	// Note describes the kind of the back end: embedded, simulator, redis 7.0.15.
	Note string
	// Check returns an error if the back end is down.
	Check func(ctx context.Context) error
	// Optional means that the gateway is ready without the back end. For example, a carrier may
	// be down without stopping messages of other carriers.
	Optional bool
}

// Surface implements the operations of the admin API.
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

	// The inner errorAnswers handles errors before they are recorded, the outer one errors of
	// the audit log.
	r := app.Group("/admin", s.authorize, errorAnswers().Handler, s.record, errorAnswers().Handler)
	for _, o := range s.operations {
		if o.method == fiber.MethodGet {
			r.Get(o.path, o.handle) // also handles HEAD
		} else {
			r.Add(o.method, o.path, o.handle)
		}
	}

	// Requests of other gateways are answered from the journals of this gateway only.
	internal := app.Group("/internal", s.authorizePeer, errorAnswers().Handler)
	internal.Post("/server", s.exchangeServer)
	internal.Get("/events", s.withSelection(s.listEvents))
	internal.Get("/events/:event", s.getEvent)
	internal.Post("/events/replay", s.record, errorAnswers().Handler, s.withSelection(s.replayEvents))
}

// errorAnswers returns the answers to errors. Answers for roles that may see errors of back ends
// include them.
func errorAnswers() httpd.Errors {
	return httpd.ErrorsOf(httpd.Errors{
		relay.KindForbidden: httpd.Verbatim(fiber.StatusForbidden),
		relay.KindConflict:  httpd.Verbatim(fiber.StatusConflict),
		relay.KindNoCredit:  httpd.Verbatim(fiber.StatusPaymentRequired),
		relay.KindUnavailable: func(c *fiber.Ctx, err error) error {
			c.Set(fiber.HeaderRetryAfter, "5")
			if c.UserContext().Err() != nil {
				return httpd.Message(c, fiber.StatusServiceUnavailable, "The request took too long: select an account or a shorter period.")
			}
			if !principalOf(c).Role.SeesFaults() {
				return httpd.Unavailable(c)
			}
			return httpd.Message(c, fiber.StatusServiceUnavailable, err.Error())
		},
	})
}
