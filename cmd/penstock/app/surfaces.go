package app

import (
	"cmp"
	"context"
	"runtime"
	"strconv"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"

	"github.com/penstock/penstock/config"
	"github.com/penstock/penstock/delivery/guard"
	"github.com/penstock/penstock/delivery/httpout"
	"github.com/penstock/penstock/delivery/oidc"
	"github.com/penstock/penstock/delivery/telemetry"
	"github.com/penstock/penstock/delivery/worker"
	"github.com/penstock/penstock/ingest/admin"
	"github.com/penstock/penstock/ingest/admin/traffic"
	"github.com/penstock/penstock/ingest/carrier"
	"github.com/penstock/penstock/ingest/cdr"
	"github.com/penstock/penstock/ingest/console"
	"github.com/penstock/penstock/ingest/httpd"
	"github.com/penstock/penstock/ingest/intake"
	"github.com/penstock/penstock/ingest/iotapi"
	"github.com/penstock/penstock/ingest/ledgerapi"
	"github.com/penstock/penstock/ingest/openapi"
	"github.com/penstock/penstock/ingest/restv2"
	"github.com/penstock/penstock/ingest/restv3"
	"github.com/penstock/penstock/ingest/soap"
	"github.com/penstock/penstock/ingest/uplink"
	"github.com/penstock/penstock/relay"
	"github.com/penstock/penstock/relay/event"
	"github.com/penstock/penstock/relay/inbound"
	"github.com/penstock/penstock/relay/inventory"
	"github.com/penstock/penstock/relay/lookup"
	"github.com/penstock/penstock/relay/outbox"
	"github.com/penstock/penstock/relay/replay"
	"github.com/penstock/penstock/relay/sim"
	"github.com/penstock/penstock/relay/user"
)

// openSurfaces creates the app and mounts the surfaces. spans is nil without tracing.
func (g *Gateway) openSurfaces(c core, spans *telemetry.Exporter, lookups *lookup.Service, inventories *inventory.Service) error {
	o := g.cfg.Overload
	g.limits = httpd.NewLimits(httpd.LimitOptions{
		Webhooks:     httpd.RequestLimit{Requests: o.Webhooks.Requests, Bytes: int64(o.Webhooks.Bytes)},
		API:          httpd.RequestLimit{Requests: o.API.Requests, Bytes: int64(o.API.Bytes)},
		Searches:     o.Searches,
		AccountShare: o.AccountShare, Wait: o.Wait, Connections: o.Connections, Logger: g.log,
	})
	g.app = httpd.New(httpd.Options{
		Logger: g.log, Seed: g.node + strconv.FormatInt(time.Now().Unix(), 36) + "-", TrustedProxies: g.cfg.TrustedProxies, Limits: g.limits,
		TLS: g.certificate != nil, AccessLog: g.cfg.Log.Access, Observe: g.timings.Request, Tracer: g.tracer,
	})
	users := user.New(c.stores.records.Users, user.Options{SessionTime: g.cfg.Users.Session})
	auth := httpd.NewAuth(httpd.AuthDeps{
		Tokens: c.stores.records.Accounts, AdminToken: g.cfg.AdminToken, Now: time.Now, Sessions: users, Accounts: c.stores.records.Accounts,
		Operations: openapi.Operations(restv2.OpenAPI(), restv3.OpenAPI(), iotapi.OpenAPI(), ledgerapi.OpenAPI()),
		Audit:      c.stores.records.Audit, PublicURL: g.cfg.PublicURL, Logger: g.log,
	})
	auth.AttemptLimiter().InventoryPending = g.undeclared.Load
	auth.AttemptLimiter().Logger = g.log
	g.onStart(func(ctx context.Context) { c.stores.records.Accounts.Changes(ctx, auth.Changed) })
	g.checks = append(g.checks, journals(c.proc.listedIntakes())...)
	program := admin.Program{
		Version: g.version, Queue: func() admin.Deliveries { return admin.Deliveries(c.senders.queue.Stats()) }, Stored: measure(g, "the size of the records", time.Hour, g.sizes),
		Binds: c.sending.carriers.status, Sending: c.sending.stats,
	}
	metrics := g.newMetrics(c, program, auth, spans)
	relays, err := inbound.NewRelayService(inbound.RelayServiceDeps{
		Store: c.stores.records.Inbound, Accounts: c.stores.records.Accounts, CheckURL: guard.New(g.cfg.Egress.Allow).CheckURL,
		HasSIM: func(ctx context.Context, acct relay.AccountID, iccid string) (bool, error) {
			_, err := c.stores.records.SIMs.Get(ctx, acct, sim.ICCID(iccid))
			if relay.KindOf(err) == relay.KindNotFound {
				return false, nil
			}
			return err == nil, err
		},
	})
	if err != nil {
		return err
	}
	uplinks := g.mountWebhooks(c, auth)
	iotapi.New(iotapi.Deps{IoT: c.proc.devices, Submit: uplinks, Rules: c.rules, Preview: c.senders.preview}).Mount(g.app, auth)
	records := c.stores.records
	restv2.New(restv2.Deps{
		Messages: c.sending.messages, Relays: relays, TryRelay: c.proc.inbound.Try, Lookup: lookups.Lookup, Balance: records.Credit.Balance,
		RequestCDR: c.calls.Request, CDRReady: c.calls.ArchiveReady, OpenCDR: c.archive.Open, Trunks: records.Trunks.Trunks,
	}).Mount(g.app, auth)
	restv3.New(restv3.Deps{SIMs: c.sims.sims, Actions: c.sims.actions, Usage: c.sims.usage}).Mount(g.app, auth)
	soap.New(soap.Deps{Messages: c.sending.messages, Logins: records.Accounts, AttemptLimiter: auth.AttemptLimiter(), PublicURL: g.cfg.PublicURL, Logger: g.log, Now: time.Now}).Mount(g.app)
	ledgerapi.New(c.ledgers.Service, ledgerapi.Options{PublicURL: g.cfg.PublicURL, Logger: g.log}).Mount(g.app, auth)
	ring := g.openTraffic(c, program)
	surface := g.newAdmin(c, program, metrics, users, relays, inventories, ring)
	surface.Mount(g.app, auth)
	g.onStart(surface.Watch)
	console.Mount(g.app)
	openapi.Mount(g.app, restv2.OpenAPI(), soap.OpenAPI(), restv3.OpenAPI(), iotapi.OpenAPI(), ledgerapi.OpenAPI(), uplink.OpenAPI(), carrier.OpenAPI(), cdr.OpenAPI(), admin.OpenAPI(), console.OpenAPI())
	g.app.Use(httpd.NotFound)
	return nil
}

// newMetrics returns the metrics of /metrics.
func (g *Gateway) newMetrics(c core, p admin.Program, auth *httpd.Auth, spans *telemetry.Exporter) *prometheus.Registry {
	metrics := prometheus.NewRegistry()
	metrics.MustRegister(
		collectors.NewGoCollector(), collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}),
		admin.NewJournalCollector(c.proc.listedIntakes()), admin.NewDeliveryCollector(p.Queue), admin.NewStoredCollector(p.Stored),
		admin.NewAccountCollector(measure(g, "the figures of accounts", 5*time.Minute, g.accountFigures(c.proc.devices))),
		admin.NewBindCollector(p.Binds), admin.NewSendingCollector(p.Sending),
		admin.NewAttemptCollector(auth.AttemptLimiter().Counts), admin.NewRuleCollector(c.rules.Stats), admin.NewLedgerCollector(c.ledgers.faults.Load), admin.NewCodecCollector(c.proc.devices.Codecs),
		admin.NewLimitCollector(g.limits.Stats), admin.NewUpCollector(g.checks, time.Now), admin.NewBuildInfo(g.version, runtime.Version()),
	)
	metrics.MustRegister(g.timings.Collectors()...)
	if spans != nil {
		metrics.MustRegister(admin.NewSpanCollector(spans.Stats))
	}
	if g.certificate != nil {
		metrics.MustRegister(admin.NewCertificateMetric(g.certificate.Expires))
	}
	return metrics
}

// mountWebhooks mounts the endpoints for networks, carriers and switches.
func (g *Gateway) mountWebhooks(c core, auth *httpd.Auth) *uplink.Surface {
	uplinks := uplink.New(c.proc.intakes[event.Uplink], c.proc.uplinkProcessor, c.stores.records.Devices, uplink.Options{AnswerTimeout: g.cfg.Inbound.AnswerWait, Logger: g.log})
	uplinks.Mount(g.app, auth)
	inbox := carrier.New(c.proc.intakes[event.SMS], carrier.Options{PublicURL: g.cfg.PublicURL, Logger: g.log})
	inbox.Mount(g.app, auth)
	inbox.MountReceipts(g.app, auth, c.proc.intakes[event.Receipt], c.sending.signer)
	cdr.New(c.proc.intakes[event.CDR], cdr.Options{Logger: g.log}).Mount(g.app, auth)
	return uplinks
}

// newAdmin returns the admin API.
func (g *Gateway) newAdmin(c core, p admin.Program, metrics *prometheus.Registry, users *user.Service, relays *inbound.RelayService, inventories *inventory.Service, ring *traffic.Ring) *admin.Surface {
	records := c.stores.records
	inspector := uplink.NewInspector(c.proc.intakes[event.Uplink], c.proc.devices)
	tracer := &inbound.Tracer{
		Posts:   posts{c.proc.intakes, c.proc.smsProcessor, frameTracer{inspector, records.Devices, c.rules}.trace},
		Service: c.proc.inbound, Deliveries: records.Deliveries, Accounts: records.Accounts,
	}
	return admin.New(admin.Deps{
		Node: g.node, Peers: admin.NewPeers(g.node, c.membership.keys, records.Gateways, time.Now), Recover: c.membership.Recover,
		AcceptServer: func(ctx context.Context) (string, error) { return c.stores.primary.accept(ctx, records.DB) }, NewerServer: c.stores.primary.mergeServer,
		Accounts: records.Accounts, Inventory: inventories, Intakes: c.proc.listedIntakes(), Deliveries: records.Deliveries, Breakers: c.stores.cache.Breakers(), Credit: records.Credit,
		Messages: records.Messages, WaitReason: c.sending.submit.WaitReason, Relays: relays,
		ReadMessage: carrier.ReadJSON, ReadPost: c.proc.smsProcessor.Messages, Explain: c.proc.inbound.Explain, Trace: tracer.Trace,
		IoT: c.proc.devices, Rules: c.rules, Inspector: inspector, Types: records.Devices, Effects: replay.NewStore(records.DB),
		SIMs: records.SIMs, Pools: records.Pools, Usage: records.Usage, Jobs: records.Jobs, Ledgers: c.ledgers.Service,
		Backends: g.checks, Metrics: metrics, Now: time.Now, Logger: g.log,
		Users: users, Provider: providerOf(g.cfg), Audit: records.Audit,
		PublicURL: g.cfg.PublicURL, Program: p, Traffic: ring,
		Operations: openapi.Operations(restv2.OpenAPI(), restv3.OpenAPI(), iotapi.OpenAPI(), ledgerapi.OpenAPI(), admin.OpenAPI()),
	})
}

// Routes returns the HTTP application of the gateway. A test compares its routes with those of
// the specification.
func (g *Gateway) Routes() *httpd.App { return g.app }

// providerOf returns the OpenID Connect provider; nil if none is configured.
func providerOf(c config.Config) admin.Provider {
	if c.OIDC.Issuer == "" {
		return nil
	}
	return oidc.New(oidc.Options{
		Issuer: c.OIDC.Issuer, ClientID: c.OIDC.ClientID, ClientSecret: c.OIDC.ClientSecret, RedirectURL: c.PublicURL + "/admin/oidc/callback",
		Scopes: c.OIDC.Scopes, NameClaim: c.OIDC.NameClaim, RoleClaim: c.OIDC.RoleClaim, AccountClaim: c.OIDC.AccountClaim,
		Roles: map[user.Role][]string{user.Admin: c.OIDC.Admin, user.Operator: c.OIDC.Operator, user.Viewer: c.OIDC.Viewer},
	})
}

// previewer returns a function that returns the signed request of a delivery with all headers, and
// the reason why the client would refuse the request. It sends nothing and resolves no host names.
func previewer(worker *worker.Worker, client *httpout.Client, g *guard.Guard) outbox.Previewer {
	return func(ctx context.Context, d outbox.Delivery) (outbox.Request, string, error) {
		signed, err := worker.Preview(ctx, d)
		if err != nil {
			return outbox.Request{}, "", err
		}
		req, unsendable := client.Preview(ctx, signed)
		return req, errorText(cmp.Or(unsendable, g.CheckURL(signed.URL))), nil
	}
}

// errorText returns the text of an error; empty for nil.
func errorText(err error) string {
	if err == nil {
		return ""
	}
	return err.Error()
}

// posts finds the events of requests in the journals of this gateway, for traces.
type posts struct {
	intakes  map[event.Kind]*intake.Intake
	messages *carrier.Processor
	frames   func(ctx context.Context, acct relay.AccountID, item *intake.Item) ([]inbound.Step, []inbound.FrameTrace, error)
}

// Post returns an event and functions that parse its request.
func (p posts) Post(ctx context.Context, id string) (inbound.Post, error) {
	for _, kind := range event.Kinds() {
		e, item, err := p.intakes[kind].Event(ctx, id)
		if relay.KindOf(err) == relay.KindNotFound {
			continue
		}
		return inbound.Post{
			Event: e, TokenAccount: item.Entry.Account,
			Messages: func() ([]inbound.Message, string, error) { return p.messages.Messages(&item) },
			Frames: func(ctx context.Context) ([]inbound.Step, []inbound.FrameTrace, error) {
				return p.frames(ctx, item.Entry.Account, &item)
			},
		}, err
	}
	return inbound.Post{}, relay.Errorf(relay.KindNotFound, "event %s", id)
}
