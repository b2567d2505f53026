package app

import (
	"context"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"runtime"
	"strconv"
	"sync"
	"sync/atomic"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/collectors"

	"github.com/penstock/penstock/config"
	"github.com/penstock/penstock/decoders/catalog"
	"github.com/penstock/penstock/delivery"
	"github.com/penstock/penstock/delivery/archive"
	"github.com/penstock/penstock/delivery/guard"
	"github.com/penstock/penstock/delivery/httpout"
	"github.com/penstock/penstock/delivery/operator"
	"github.com/penstock/penstock/delivery/queue"
	"github.com/penstock/penstock/delivery/queue/jobs"
	"github.com/penstock/penstock/delivery/submit"
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
	"github.com/penstock/penstock/ingest/journal"
	"github.com/penstock/penstock/ingest/ledgerapi"
	"github.com/penstock/penstock/ingest/openapi"
	"github.com/penstock/penstock/ingest/restv2"
	"github.com/penstock/penstock/ingest/restv3"
	"github.com/penstock/penstock/ingest/soap"
	"github.com/penstock/penstock/ingest/uplink"
	"github.com/penstock/penstock/relay"
	"github.com/penstock/penstock/relay/account"
	"github.com/penstock/penstock/relay/event"
	"github.com/penstock/penstock/relay/inbound"
	"github.com/penstock/penstock/relay/inventory"
	"github.com/penstock/penstock/relay/iot"
	"github.com/penstock/penstock/relay/ledger"
	"github.com/penstock/penstock/relay/lookup"
	"github.com/penstock/penstock/relay/message"
	"github.com/penstock/penstock/relay/outbox"
	"github.com/penstock/penstock/relay/provisioning"
	"github.com/penstock/penstock/relay/rule"
	"github.com/penstock/penstock/relay/sim"
	"github.com/penstock/penstock/relay/sip"
	"github.com/penstock/penstock/relay/sqlstore/accounts"
	"github.com/penstock/penstock/relay/tracing"
	"github.com/penstock/penstock/relay/usage"
	"github.com/penstock/penstock/relay/user"
)

// Gateway is the gateway, put together. What is opened first is closed last.
type Gateway struct {
	cfg     config.Config
	log     *slog.Logger
	version string // of the program
	node    string
	// masterKey is the newest master key of ledgers.
	masterKey string
	// wrongKey says that accounts' keys are wrapped by another master key.
	wrongKey atomic.Bool
	// sharedToken authenticates requests between gateways.
	sharedToken string

	timings        *admin.Timings
	tracing        *tracing.Tracer     // nil unless spans are sent
	spans          *telemetry.Exporter // the same
	certificate    *httpd.Certificate  // nil without TLS
	backends       backends
	accounts       *accounts.Store
	inventory      *inventory.Service
	queue          *queue.Queue
	tracer         *inbound.Tracer
	preview        outbox.Previewer
	prober         prober
	iot            *iot.Service
	sim            *sim.Service
	inbound        *inbound.Service
	message        *message.Service
	rules          *rule.Service
	lookup         *lookup.Service
	ledger         *ledger.Service
	archive        *archive.Store
	sip            *sip.Service
	fileStore      *archive.FileStore
	meter          *usage.Meter
	usage          *usage.Service
	jobs           *jobs.Jobs
	operator       simOperator
	actions        *provisioning.Actions
	uplink         *uplink.Processor
	intakes        map[event.Kind]*intake.Intake
	carriers       carriers
	signer         carrier.Signer
	receiptHandler *message.ReceiptHandler
	submit         *submit.Worker
	limits         *httpd.Limits
	auth           *httpd.Auth
	app            *httpd.App
	checks         []admin.Backend // every back end
	membership     *membership
	stored         sizes
	traffic        *traffic.Ring
	admin          *admin.Surface

	life    context.Context // of what runs in the background
	stop    context.CancelFunc
	running sync.WaitGroup
	started bool
	closers []func(context.Context) error
	clock   *clock
}

// openStep makes one part of a gateway.
type openStep = func(context.Context) error

// Open puts the gateway together. Nothing is accepted and nothing processed
// before start.
func Open(ctx context.Context, cfg config.Config, log *slog.Logger, version string) (*Gateway, error) {
	return assemble(ctx, cfg, log, version, func(d *Gateway) []openStep {
		return []openStep{
			d.openCertificate, d.openDataDir, d.openTracing, d.openBackends, d.openInventory, d.openDelivery, d.openArchive, d.openJobs, d.openSIP, d.openSIM, d.openUsage, d.openReceiptHandler, d.openIntakes, d.openRules, d.openMembership,
			d.openCarriers, d.openSubmit, d.openLookup, d.openMessage, d.openSurfaces, d.declare,
		}
	})
}

// assemble makes the parts of a gateway in their order.
func assemble(ctx context.Context, cfg config.Config, log *slog.Logger, version string, steps func(*Gateway) []openStep) (*Gateway, error) {
	d := &Gateway{cfg: cfg, log: log, version: version, clock: systemClock(log), timings: admin.NewTimings(), intakes: make(map[event.Kind]*intake.Intake)}
	d.life, d.stop = context.WithCancel(context.Background())
	for _, open := range steps(d) {
		if err := open(ctx); err != nil {
			return nil, fmt.Errorf("%w%s", err, d.Abandon())
		}
	}
	return d, nil
}

// openDataDir makes the data directory and what identifies this node.
func (d *Gateway) openDataDir(context.Context) (err error) {
	if err := os.MkdirAll(d.cfg.DataDir, 0o700); err != nil {
		return fmt.Errorf("data directory: %w", err)
	}
	if d.node, _, err = kept(d.cfg.DataDir, nodeFile, 6); err != nil {
		return err
	}
	if err := checkDatabases(d.cfg); err != nil {
		return err
	}
	if d.cfg.AdminToken == "" {
		if d.cfg.AdminToken, _, err = kept(d.cfg.DataDir, adminTokenFile, 26); err != nil {
			return err
		}
		d.log.Info("the admin token is kept in a file", "path", filepath.Join(d.cfg.DataDir, adminTokenFile))
	}
	return nil
}

func (d *Gateway) openBackends(ctx context.Context) error {
	back, err := openBackends(ctx, d.cfg, d.log, d.timings)
	d.backends = back
	d.closers = append(d.closers, func(context.Context) error { return back.close() })
	d.backends.list = append(d.backends.list, admin.Backend{Name: "clock", Check: d.clock.check, Optional: true})
	return err
}

func (d *Gateway) openInventory(context.Context) error {
	d.accounts = d.backends.records.Accounts
	d.inventory = inventory.New(inventory.Deps{
		Accounts: d.accounts, Devices: d.backends.records.Devices, Relays: d.backends.records.Inbound, Ledgers: d.backends.records.Ledgers,
		Networks: d.backends.records.Lookups, Credit: d.backends.records.Credit, Trunks: d.backends.records.Trunks, SIMs: declaredSIMs{d.backends.records.SIMs, holder{d}},
		Rules:    declaredRules{d},
		CheckURL: guard.New(d.cfg.Egress.Allow).CheckURL, CheckSource: checkSource,
		AllowHTTPCallback: d.cfg.Egress.AllowHTTPCallback, Now: time.Now,
	})
	return nil
}

// openDelivery makes the ways out and the queue before them.
func (d *Gateway) openDelivery(context.Context) error {
	http, err := httpout.New(httpout.Options{Allow: d.cfg.Egress.Allow})
	if err != nil {
		return err
	}
	if err := d.openOperator(); err != nil {
		return err
	}
	sims, err := operator.New(d.operator, d.serves)
	if err != nil {
		return err
	}
	send, err := worker.New(worker.Deps{
		HTTP: http, Mail: d.backends.mail, Operator: sims, Messages: sender{d}, Simulated: func(number string) bool { return d.submit.Simulated(number) },
		Secrets: d.secrets, Now: time.Now,
	}, worker.Options{})
	if err != nil {
		return err
	}
	d.prober = prober{send, d.secrets}
	d.preview = previewer(send, http, guard.New(d.cfg.Egress.Allow))
	d.queue, err = queue.New(queue.Deps{
		Store: d.backends.records.Deliveries, Breakers: d.backends.cache.Breakers(), Redis: d.backends.cache, Send: send,
		Schedule: delivery.Schedule(d.cfg.Delivery.Schedule), Logger: d.log, Observe: d.observeDelivery, Tracer: d.tracing,
	}, queue.Options{})
	return err
}

// observeDelivery measures a delivery that arrived.
func (d *Gateway) observeDelivery(one outbox.Delivery, o outbox.Outcome) {
	if o.State == outbox.Delivered || o.State == outbox.Simulated {
		d.timings.Delivered(string(one.Kind), time.Since(one.CreatedAt))
	}
}

// serves reports whether the relay that routed a delivery still exists and still
// delivers to the same SIM.
func (d *Gateway) serves(ctx context.Context, one outbox.Delivery) (bool, error) {
	r, err := d.backends.records.Inbound.Get(ctx, one.Account, inbound.Geographic, one.Relay)
	if relay.KindOf(err) == relay.KindNotFound {
		return false, nil
	}
	return r.Action.Name == inbound.MVNO && r.ICCID == one.SIM.ICCID, err
}

// openJobs makes what is answered with a job's id, and what runs it.
func (d *Gateway) openJobs(context.Context) (err error) {
	if err := makeMasterKey(d.cfg, d.log); err != nil {
		return err
	}
	keys, err := masterKeys(d.cfg)
	if err != nil {
		return err
	}
	d.masterKey = keys[0]
	events := d.events()
	if err := d.openLedger(keys, events); err != nil {
		return err
	}
	if err := d.openActions(events); err != nil {
		return err
	}
	d.jobs, err = jobs.New(jobs.Deps{
		Store: d.backends.records.Jobs, Redis: d.backends.cache, Runners: d.runners(), OnEnd: d.actions.Ending, Logger: d.log,
	}, jobs.Options{})
	if err != nil {
		return err
	}
	d.ledger.SubmitTo(d.jobs)
	d.actions.SubmitTo(d.jobs)
	return nil
}

// secrets returns what signs an account's requests.
func (d *Gateway) secrets(ctx context.Context, acct account.ID) ([]string, error) {
	a, err := d.accounts.Account(ctx, acct)
	return a.WebhookSecrets, err
}

// marks returns the stored statuses of a node's events.
func (d *Gateway) marks(node string) event.Statuses { return d.backends.records.statuses(node) }

// openIntakes makes the journal of each kind of traffic and what is behind it.
func (d *Gateway) openIntakes(context.Context) error {
	sms, err := inbound.New(inbound.Deps{
		Relays: d.backends.records.Inbound, Claims: d.backends.records.Inbound, Deliveries: d.backends.records.Deliveries,
		Inbox: d.backends.records.Inbound, Parts: d.backends.records.Inbound, Dispatcher: d.queue,
		Quarantine: carrier.NewQuarantine(d.marks), Preview: d.preview,
	}, inbound.Options{
		Settings: inbound.Settings{Zone: d.cfg.TimeZone, MailDomain: mailDomain(d.cfg.SMTP.From)},
		Lease:    d.queue.Lease(), Remember: max(d.cfg.Journal.Retention, 7*24*time.Hour), Logger: d.log,
		JoinWait: d.cfg.Inbound.JoinWait, SweepEvery: d.cfg.Inbound.SweepEvery,
	})
	if err != nil {
		return err
	}
	d.inbound = sms
	d.iot = iot.New(d.backends.records.Devices, d.backends.cache.IoT(), d.backends.readings, catalog.Compile, iot.Options{
		Logger: d.log, Radio: iot.RadioDetail(d.cfg.Readings.RadioData), Now: func() time.Time { return d.clock.now() },
	})
	d.uplink = uplink.NewProcessor(d.iot)
	quota := journal.NewQuota(int64(d.cfg.Journal.MaxBytes))
	messages := carrier.NewProcessor(sms)
	messages.Add(carrier.SMPP, carrier.NewSMPP(alphabets(d.cfg.Carriers)))
	d.tracer = &inbound.Tracer{Posts: posts{d.intakes, messages, d.traceFrames}, Service: sms, Sent: d.backends.records.Deliveries, Accounts: d.accounts}
	for kind, p := range map[event.Kind]intake.Processor{
		event.Uplink: d.uplink, event.SMS: messages, event.Receipt: carrier.NewReceipts(d.receiptHandler),
		event.CDR: cdr.NewProcessor(d.backends.records.Calls, d.meter),
	} {
		if err := d.openIntake(kind, p, quota); err != nil {
			return err
		}
	}
	return nil
}

func (d *Gateway) openIntake(kind event.Kind, p intake.Processor, quota *journal.Quota) error {
	statuses := d.backends.records.statuses(d.node)
	log, err := journal.Open(filepath.Join(d.cfg.DataDir, "journal", string(kind)), journal.Options{
		Retention: d.cfg.Journal.Retention, Quota: quota, Logger: d.log.With("kind", string(kind)),
		Synced: d.timings.Fsync(string(kind)), KeepAll: d.clock.jumps, Need: intake.Need(kind, statuses),
	})
	if err != nil {
		return err
	}
	d.closers = append(d.closers, func(context.Context) error { return log.Close() })
	in, err := intake.New(kind, d.node, log, statuses, p, d.intakeOptions(kind))
	if err != nil {
		return err
	}
	d.intakes[kind] = in
	return nil
}

// openSurfaces makes the app and mounts every surface.
func (d *Gateway) openSurfaces(context.Context) error {
	d.limits = httpd.NewLimits(limitOptions(d.cfg.Overload, d.log))
	d.app = httpd.New(httpd.Options{
		Logger: d.log, Seed: d.node + strconv.FormatInt(time.Now().Unix(), 36) + "-", TrustedProxies: d.cfg.TrustedProxies, Limits: d.limits,
		AccessLog: d.cfg.Log.Access, Observe: d.timings.Request, Tracer: d.tracing,
	})
	d.auth = httpd.NewAuth(d.accounts, d.cfg.AdminToken, time.Now)
	d.auth.TrustPeers(d.sharedToken)
	d.auth.Guesses().Logger = d.log
	intakes := []*intake.Intake{d.intakes[event.Uplink], d.intakes[event.SMS], d.intakes[event.Receipt], d.intakes[event.CDR]}
	d.checks = append(d.backends.list, journals(intakes)...)
	metrics := prometheus.NewRegistry()
	metrics.MustRegister(
		collectors.NewGoCollector(), collectors.NewProcessCollector(collectors.ProcessCollectorOpts{}),
		admin.NewCollector(intakes, func() admin.Deliveries { return admin.Deliveries(d.queue.Stats()) }, d.stored.Load),
		admin.NewCarrierCollector(d.carriers.status), admin.NewSendingCollector(d.sendingStats),
		admin.NewAttemptCollector(d.auth.Guesses().Counts), admin.NewRuleCollector(d.rules.Stats),
		admin.NewLimitCollector(d.limits.Stats), admin.NewUpCollector(d.checks, time.Now), admin.NewBuildInfo(d.version, runtime.Version()),
	)
	metrics.MustRegister(admin.NewCodecMetrics(d.iot.Codecs)...)
	metrics.MustRegister(d.timings.Collectors()...)
	if d.spans != nil {
		metrics.MustRegister(admin.NewSpanCollector(d.spans.Stats))
	}
	if d.certificate != nil {
		metrics.MustRegister(admin.NewCertificateMetric(d.certificate.Expires))
	}
	frames := uplink.New(d.intakes[event.Uplink], d.uplink, d.backends.records.Devices, uplink.Options{Logger: d.log})
	frames.Mount(d.app, d.auth)
	inbox := carrier.New(d.intakes[event.SMS], carrier.Options{PublicURL: d.cfg.PublicURL, Logger: d.log})
	inbox.Mount(d.app, d.auth)
	inbox.MountReceipts(d.app, d.auth, d.intakes[event.Receipt], d.signer)
	cdr.New(d.intakes[event.CDR], cdr.Options{Logger: d.log}).Mount(d.app, d.auth)
	iotapi.New(iotapi.Deps{IoT: d.iot, Submit: frames, Rules: d.rules, Preview: d.preview}).Mount(d.app, d.auth)
	relays, err := inbound.NewRelayService(inbound.RelayServiceDeps{
		Records: d.backends.records.Inbound, Accounts: d.accounts, Inbox: d.backends.records.Inbound, CheckURL: guard.New(d.cfg.Egress.Allow).CheckURL,
	})
	if err != nil {
		return err
	}
	restv2.New(restv2.Deps{
		Messages: d.message, Relays: relays, Lookup: d.lookup.Lookup, Balance: d.backends.records.Credit.Balance,
		RequestCDR: d.sip.Request, CDRReady: d.sip.Archive, OpenCDR: d.archive.Open, Trunks: d.backends.records.Trunks.Trunks,
	}).Mount(d.app, d.auth)
	restv3.New(restv3.Deps{SIMs: d.sim, Actions: d.actions, Usage: d.usage}).Mount(d.app, d.auth)
	soap.New(soap.Deps{Messages: d.message, Logins: d.accounts, Guesses: d.auth.Guesses()}, soap.Options{PublicURL: d.cfg.PublicURL, Logger: d.log}).Mount(d.app)
	ledgerapi.New(d.ledger, ledgerapi.Options{PublicURL: d.cfg.PublicURL, Logger: d.log}).Mount(d.app, d.auth)
	d.openTraffic()
	d.admin = admin.New(admin.Deps{
		Node: d.node, Peers: admin.NewPeers(d.node, d.sharedToken, d.backends.records.Gateways, time.Now), Recover: d.membership.Recover,
		Accounts: d.accounts, Inventory: d.inventory, Intakes: intakes, Deliveries: d.backends.records.Deliveries, Breakers: d.backends.cache.Breakers(), Credit: d.backends.records.Credit,
		Messages: d.backends.records.Messages, Waits: d.submit.Waits, Relays: relays,
		ReadMessage: carrier.ReadJSON, Explain: d.inbound.Explain, Trace: d.tracer.Trace,
		IoT: d.iot, Rules: d.rules, Preview: d.preview, Inspector: uplink.NewInspector(d.intakes[event.Uplink], d.iot), Types: d.backends.records.Devices,
		SIMs: d.backends.records.SIMs, Pools: d.backends.records.Pools, Usage: d.backends.records.Usage, Jobs: d.backends.records.Jobs, Ledgers: d.ledger,
		Backends: d.checks, Metrics: metrics, Now: time.Now, Logger: d.log,
		Users: user.New(d.backends.records.Users, user.Options{SessionTime: d.cfg.Users.Session}), Provider: providerOf(d.cfg), Audit: d.backends.records.Audit,
		PublicURL: d.cfg.PublicURL,
		Program: admin.Program{
			Version: d.version, Queue: func() admin.Deliveries { return admin.Deliveries(d.queue.Stats()) }, Stored: d.stored.Load,
			Carriers: d.carriers.status, Sending: d.sendingStats,
		},
		Traffic: d.traffic,
	})
	d.admin.Mount(d.app, d.auth)
	console.Mount(d.app)
	openapi.Mount(d.app, restv2.OpenAPI(), soap.OpenAPI(), restv3.OpenAPI(), iotapi.OpenAPI(), ledgerapi.OpenAPI(), uplink.OpenAPI(), carrier.OpenAPI(), cdr.OpenAPI(), admin.OpenAPI(), console.OpenAPI())
	d.app.Use(httpd.NotFound)
	return nil
}

// start begins to process; the app is served by the caller.
func (d *Gateway) start() error {
	ctx := d.life
	if err := d.queue.Start(ctx); err != nil {
		return err
	}
	if err := d.jobs.Start(ctx); err != nil {
		return err
	}
	d.started = true
	d.running.Go(func() { d.accounts.Changes(ctx, d.auth.Forget) })
	for _, in := range d.intakes {
		d.running.Go(func() { d.run(ctx, in) })
	}
	d.running.Go(func() { d.inbound.Run(ctx) })
	d.running.Go(func() { d.rules.Run(ctx) })
	d.running.Go(func() { d.admin.Watch(ctx) })
	d.running.Go(func() { traffic.NewSampler(d.traffic, d.countTraffic).Run(ctx) })
	// The other gateways must know this one before it acknowledges an event.
	d.membership.beatOrWarn(ctx, d.log)
	d.running.Go(func() { d.membership.run(ctx, d.log) })
	d.running.Go(func() { d.housekeeping(ctx) })
	d.running.Go(func() { d.clock.watch(ctx) })
	d.running.Go(func() { d.sweep(ctx) })
	d.running.Go(func() { d.stored.measure(ctx, d) })
	d.running.Go(func() { d.expire(ctx) })
	d.running.Go(func() { d.renewKeys(ctx) })
	d.running.Go(func() { d.watchLedgers(ctx) })
	d.running.Go(func() { d.receiptHandler.Run(ctx) })
	d.submit.Start()
	d.carriers.start()
	return nil
}
