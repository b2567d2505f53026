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

// Gateway is the gateway, put together. What is opened first is closed last.
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
	sender     queue.Sender // makes the attempts of queue
	jobs       *jobs.Jobs
	work       jobs.Work // of jobs
	intakes    map[event.Kind]*intake.Intake
	devices    *iot.Service
	codecs     *codec.Pool
	membership *membership
	submit     *submit.Worker
	carriers   *carriers
	limits     *httpd.Limits
	app        *httpd.App
	checks     []admin.Backend // every back end

	undeclared atomic.Bool // the configured inventory is not applied yet

	life    context.Context // of what runs in the background
	stop    context.CancelFunc
	runners []func(context.Context) // start runs each until life ends
	running sync.WaitGroup
	started bool
	closers []func() error
}

// Open puts the gateway together. Nothing is accepted and nothing processed
// before start.
func Open(ctx context.Context, cfg config.Config, log *slog.Logger, version string) (*Gateway, error) {
	return assemble(ctx, cfg, log, version, (*Gateway).open)
}

// assemble opens a gateway, and closes what is open if that fails.
func assemble(ctx context.Context, cfg config.Config, log *slog.Logger, version string, open func(*Gateway, context.Context) error) (*Gateway, error) {
	d := &Gateway{cfg: cfg, log: log, version: version, gate: gateway.NewGate(), clock: systemClock(log), timings: admin.NewTimings()}
	d.life, d.stop = context.WithCancel(context.Background())
	if err := open(d, ctx); err != nil {
		return nil, fmt.Errorf("%w%s", err, d.Abandon())
	}
	return d, nil
}

func (d *Gateway) open(ctx context.Context) (err error) {
	if err := checkSettings(d.cfg); err != nil {
		return err
	}
	if d.certificate, err = openCertificate(d.cfg.TLS); err != nil {
		return err
	}
	if err := d.openDataDir(); err != nil {
		return err
	}
	d.codecs = codec.New(d.log)
	d.onClose(d.codecs.Close)
	spans := d.openTracing()
	stores, err := d.openBackends(ctx)
	if err != nil {
		return err
	}
	c, err := d.openCore(ctx, stores)
	if err != nil {
		return err
	}
	if d.cfg.Database.URL != "" { // else no other gateway shares the database
		// If the database is down now, the first heartbeat checks the name.
		taken, err := c.membership.checkName(ctx)
		if err != nil && relay.KindOf(err) != relay.KindUnavailable {
			return err
		}
		if taken {
			return errors.New(c.membership.Halted())
		}
	}
	lookups, err := d.openLookup(stores.records)
	if err != nil {
		return err
	}
	inventories := d.newInventory(stores.records, c.sims.meter, c.rules)
	if err := d.openSurfaces(c, spans, lookups, inventories); err != nil {
		return err
	}
	d.onStart(d.clock.watch)
	d.whileOpen(d.housekeeping, d.sweep, d.expire)
	if d.cfg.Database.URL != "" {
		d.onStart(func(ctx context.Context) { stores.primary.watch(ctx, stores.records.DB) })
	}
	return d.declare(ctx, stores.records.Accounts, inventories)
}

// check adds a back end to those that /readyz reports.
func (d *Gateway) check(b admin.Backend) { d.checks = append(d.checks, b) }

// onClose has close called when the gateway ends, after what is added later.
func (d *Gateway) onClose(closer func() error) { d.closers = append(d.closers, closer) }

// onStart has each of run started with the gateway; it returns when its context ends.
func (d *Gateway) onStart(run ...func(context.Context)) { d.runners = append(d.runners, run...) }

// whileOpen has each of run started with the gateway and whenever the gate opens; it returns
// when its context ends, that is, when the gate closes.
func (d *Gateway) whileOpen(run ...func(context.Context)) {
	for _, run := range run {
		d.onStart(func(ctx context.Context) {
			_ = d.gate.Run(ctx, func(ctx context.Context) error { run(ctx); return nil })
		})
	}
}

// openDataDir makes the data directory and what identifies this node.
func (d *Gateway) openDataDir() (err error) {
	if err := os.MkdirAll(d.cfg.DataDir, 0o700); err != nil {
		return fmt.Errorf("data directory: %w", err)
	}
	if d.node, err = kept(d.cfg.DataDir, nodeFile, 6); err != nil {
		return err
	}
	if err := checkDatabases(d.cfg); err != nil {
		return err
	}
	if d.cfg.AdminToken == "" {
		if d.cfg.AdminToken, err = keptToken(d.cfg.DataDir, client.AdminTokenFile); err != nil {
			return err
		}
		d.log.Info("the admin token is kept in a file", "path", filepath.Join(d.cfg.DataDir, client.AdminTokenFile))
	}
	return makeMasterKey(d.cfg, d.log)
}

func (d *Gateway) openBackends(ctx context.Context) (backends, error) {
	var stores backends
	server, err := openPrimary(ctx, d.cfg, d.node, d.log)
	if err != nil {
		return stores, err
	}
	stores, err = openBackends(ctx, d.cfg, d.log, d.timings, server)
	d.onClose(stores.close)
	d.records, d.checks = stores.records, append(d.checks, stores.list...)
	d.check(admin.Backend{Name: "clock", Check: d.clock.check, Optional: true})
	return stores, err
}

func (d *Gateway) newInventory(records *recordStores, limits sim.LimitEnforcer, rules *rule.Service) *inventory.Service {
	return inventory.New(inventory.Deps{
		Store: inventory.NewStore(records.DB), Accounts: records.Accounts, Devices: records.Devices, Relays: records.Inbound, Ledgers: records.Ledgers,
		Networks: records.Lookups, Credit: records.Credit, Trunks: records.Trunks, SIMs: declaredSIMs{records.SIMs, limits}, Rules: rules, Audit: records.Audit,
		CheckURL: guard.New(d.cfg.Egress.Allow).CheckURL, CheckSource: checkSource(d.codecs),
		AllowHTTPCallback: d.cfg.Egress.AllowHTTPCallback, Now: time.Now,
	})
}

// start begins to process; the app is served by the caller.
func (d *Gateway) start() error {
	ctx := d.life
	if err := d.queue.Start(d.sender); err != nil {
		return err
	}
	if err := d.jobs.Start(d.work); err != nil {
		return err
	}
	d.started = true
	for _, intake := range d.intakes {
		d.running.Go(func() { d.run(ctx, intake) })
	}
	for _, run := range d.runners {
		d.running.Go(func() { run(ctx) })
	}
	// The other gateways must have a record of this one before it acknowledges an event.
	d.membership.beatOrWarn(ctx, d.log)
	d.running.Go(func() { d.membership.run(ctx, d.log) })
	d.submit.Start()
	d.carriers.start()
	return nil
}

// openTracing makes the tracer, if a collector is configured. It is closed last, so that
// it sends the spans of the end too.
func (d *Gateway) openTracing() *telemetry.Exporter {
	o := d.cfg.Tracing
	if o.URL == "" {
		return nil
	}
	spans := telemetry.New(telemetry.Options{
		URL: o.URL, Headers: o.HeaderFields(), Logger: d.log,
		About: []tracing.Attribute{{Key: "service.name", Value: "penstock"}, {Key: "service.version", Value: d.version}, {Key: "service.instance.id", Value: d.node}},
	})
	d.tracer = tracing.New(o.Sample, spans.Export)
	ctx, stop := context.WithCancel(context.Background())
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		spans.Run(ctx)
	}()
	d.onClose(func() error {
		stop()
		<-ended
		return nil
	})
	return spans
}
