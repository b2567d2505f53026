package app

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"sync"
	"sync/atomic"
	"time"

	"github.com/penstock/penstock/cmd/penstock/client"
	"github.com/penstock/penstock/config"
	"github.com/penstock/penstock/delivery/codec"
	"github.com/penstock/penstock/delivery/guard"
	"github.com/penstock/penstock/delivery/queue"
	"github.com/penstock/penstock/delivery/queue/jobs"
	"github.com/penstock/penstock/delivery/submit"
	"github.com/penstock/penstock/delivery/telemetry"
	"github.com/penstock/penstock/ingest/admin"
	"github.com/penstock/penstock/ingest/httpd"
	"github.com/penstock/penstock/ingest/intake"
	"github.com/penstock/penstock/relay"
	"github.com/penstock/penstock/relay/event"
	"github.com/penstock/penstock/relay/gateway"
	"github.com/penstock/penstock/relay/inventory"
	"github.com/penstock/penstock/relay/iot"
	"github.com/penstock/penstock/relay/rule"
	"github.com/penstock/penstock/relay/sim"
	"github.com/penstock/penstock/relay/tracing"
)

// Gateway has the parts of the gateway. They are closed in the reverse order of their opening.
type Gateway struct {
	cfg     config.Config
	log     *slog.Logger
	version string // of the program
	node    string

	gate        *gateway.Gate // closed while processing is halted
	clock       *clock
	timings     *admin.Timings
	tracer      *tracing.Tracer    // nil unless spans are sent
	certificate *httpd.Certificate // nil without TLS

	records    *recordStores
	queue      *queue.Queue
	attempter  queue.Attempter // performs the deliveries of queue
	jobs       *jobs.Jobs
	work       jobs.Work // performs the jobs
	intakes    map[event.Kind]*intake.Intake
	devices    *iot.Service
	codecs     *codec.Pool
	membership *membership
	submit     *submit.Submitter
	carriers   *carriers
	limits     *httpd.Limits
	app        *httpd.App
	checks     []admin.Backend // all back ends, for /readyz

	undeclared atomic.Bool // the configured inventory waits for the database

	background context.Context // context of background work
	stop       context.CancelFunc
	runners    []func(context.Context) // background work that method start begins
	running    sync.WaitGroup          // background work
	started    bool
	closers    []func() error
}

// Open opens the parts of the gateway. It accepts and processes nothing before Serve.
func Open(ctx context.Context, cfg config.Config, log *slog.Logger, version string) (*Gateway, error) {
	return assemble(ctx, cfg, log, version, (*Gateway).open)
}

// assemble opens a gateway with open. If open fails, it closes the opened parts.
func assemble(ctx context.Context, cfg config.Config, log *slog.Logger, version string, open func(*Gateway, context.Context) error) (*Gateway, error) {
	g := &Gateway{cfg: cfg, log: log, version: version, gate: gateway.NewGate(), clock: systemClock(log), timings: admin.NewTimings()}
	g.background, g.stop = context.WithCancel(context.Background())
	if err := open(g, ctx); err != nil {
		return nil, fmt.Errorf("%w%s", err, g.Abandon())
	}
	return g, nil
}

func (g *Gateway) open(ctx context.Context) (err error) {
	if err := checkSettings(g.cfg); err != nil {
		return err
	}
	if g.certificate, err = openCertificate(g.cfg.TLS); err != nil {
		return err
	}
	if err := g.openDataDir(); err != nil {
		return err
	}
	g.codecs = codec.New(g.log)
	g.onClose(g.codecs.Close)
	spans := g.openTracing()
	stores, err := g.openBackends(ctx)
	if err != nil {
		return err
	}
	c, err := g.openCore(ctx, stores)
	if err != nil {
		return err
	}
	if g.cfg.Database.URL != "" { // other gateways may use this database
		// The first heartbeat checks the name if the database is down now.
		taken, err := c.membership.checkName(ctx)
		if err != nil && relay.KindOf(err) != relay.KindUnavailable {
			return err
		}
		if taken {
			return errors.New(c.membership.HaltReason())
		}
	}
	lookups, err := g.openLookup(stores.records)
	if err != nil {
		return err
	}
	inventories := g.newInventory(stores.records, c.sims.meter, c.rules)
	if err := g.openSurfaces(c, spans, lookups, inventories); err != nil {
		return err
	}
	g.onStart(g.clock.watch)
	g.whileOpen(g.housekeeping, g.sweep, g.expire)
	if g.cfg.Database.URL != "" {
		g.onStart(func(ctx context.Context) { stores.primary.watch(ctx, stores.records.DB) })
	}
	return g.declare(ctx, stores.records.Accounts, inventories)
}

// addCheck adds a back end to the answer of /readyz.
func (g *Gateway) addCheck(b admin.Backend) { g.checks = append(g.checks, b) }

// onClose registers a function that runs when the gateway closes, in reverse order.
func (g *Gateway) onClose(closer func() error) { g.closers = append(g.closers, closer) }

// onStart registers functions for background work. Method start runs them until their context ends.
func (g *Gateway) onStart(runners ...func(context.Context)) {
	g.runners = append(g.runners, runners...)
}

// whileOpen registers functions that run in the background while the gate is open. Their context
// ends when the gate closes.
func (g *Gateway) whileOpen(runners ...func(context.Context)) {
	for _, run := range runners {
		g.onStart(func(ctx context.Context) {
			_ = g.gate.Run(ctx, func(ctx context.Context) error { run(ctx); return nil })
		})
	}
}

// openDataDir creates the data directory, the name of the gateway, its admin token and its master key.
func (g *Gateway) openDataDir() (err error) {
	if err := os.MkdirAll(g.cfg.DataDir, 0o700); err != nil {
		return fmt.Errorf("data directory: %w", err)
	}
	if g.node, err = readOrCreate(g.cfg.DataDir, nodeFile, 6); err != nil {
		return err
	}
	if err := checkDatabases(g.cfg); err != nil {
		return err
	}
	if g.cfg.AdminToken == "" {
		if g.cfg.AdminToken, err = readOrCreateToken(g.cfg.DataDir, client.AdminTokenFile); err != nil {
			return err
		}
		g.log.Info("the admin token is in a file", "path", filepath.Join(g.cfg.DataDir, client.AdminTokenFile))
	}
	return createMasterKey(g.cfg, g.log)
}

func (g *Gateway) openBackends(ctx context.Context) (backends, error) {
	var stores backends
	primary, err := openPrimary(ctx, g.cfg, g.node, g.log)
	if err != nil {
		return stores, err
	}
	stores, err = openBackends(ctx, g.cfg, g.log, g.timings, primary)
	g.onClose(stores.close)
	g.records, g.checks = stores.records, append(g.checks, stores.list...)
	g.addCheck(admin.Backend{Name: "clock", Check: g.clock.check, Optional: true})
	return stores, err
}

func (g *Gateway) newInventory(records *recordStores, limits sim.LimitEnforcer, rules *rule.Service) *inventory.Service {
	return inventory.New(inventory.Deps{
		Store: inventory.NewStore(records.DB), Accounts: records.Accounts, Devices: records.Devices, Relays: records.Inbound, Ledgers: records.Ledgers,
		Networks: records.Lookups, Credit: records.Credit, Trunks: records.Trunks, SIMs: inventorySIMs{records.SIMs, limits}, Rules: rules, Audit: records.Audit,
		CheckURL: guard.New(g.cfg.Egress.Allow).CheckURL, CheckSource: checkSource(g.codecs),
		AllowHTTPCallback: g.cfg.Egress.AllowHTTPCallback, Now: time.Now,
	})
}

// start starts background work. The caller serves the app.
func (g *Gateway) start() error {
	if err := g.queue.Start(g.attempter); err != nil {
		return err
	}
	if err := g.jobs.Start(g.work); err != nil {
		return err
	}
	g.started = true
	for _, intake := range g.intakes {
		g.running.Go(func() { g.process(g.background, intake) })
	}
	for _, run := range g.runners {
		g.running.Go(func() { run(g.background) })
	}
	// The other gateways must have a record of this one before it acknowledges an event.
	g.membership.beatOrWarn(g.background)
	g.running.Go(func() { g.membership.run(g.background) })
	g.submit.Start()
	g.carriers.start()
	return nil
}

// openTracing creates the tracer if a collector is configured. The tracer is opened before the back
// ends and closed after them, so that it sends the spans of the shutdown.
func (g *Gateway) openTracing() *telemetry.Exporter {
	o := g.cfg.Tracing
	if o.URL == "" {
		return nil
	}
	spans := telemetry.New(telemetry.Options{
		URL: o.URL, Headers: o.HeaderFields(), Logger: g.log,
		Resource: []tracing.Attribute{{Key: "service.name", Value: "penstock"}, {Key: "service.version", Value: g.version}, {Key: "service.instance.id", Value: g.node}},
	})
	g.tracer = tracing.New(o.Sample, spans.Export)
	ctx, stop := context.WithCancel(context.Background())
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		spans.Run(ctx)
	}()
	g.onClose(func() error {
		stop()
		<-ended
		return nil
	})
	return spans
}
