package app

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"time"

	"github.com/penstock/penstock/config"
	"github.com/penstock/penstock/ingest/admin"
	"github.com/penstock/penstock/relay"
	"github.com/penstock/penstock/relay/account"
	"github.com/penstock/penstock/relay/audit"
	"github.com/penstock/penstock/relay/credit"
	"github.com/penstock/penstock/relay/db"
	"github.com/penstock/penstock/relay/event"
	"github.com/penstock/penstock/relay/file"
	"github.com/penstock/penstock/relay/gateway"
	"github.com/penstock/penstock/relay/inbound"
	"github.com/penstock/penstock/relay/iot"
	"github.com/penstock/penstock/relay/job"
	"github.com/penstock/penstock/relay/ledger"
	"github.com/penstock/penstock/relay/lookup"
	"github.com/penstock/penstock/relay/message"
	"github.com/penstock/penstock/relay/outbox"
	"github.com/penstock/penstock/relay/rule"
	"github.com/penstock/penstock/relay/sim"
	"github.com/penstock/penstock/relay/sip"
	"github.com/penstock/penstock/relay/usage"
	"github.com/penstock/penstock/relay/user"
)

// recordStores has the stores of all domains.
type recordStores struct {
	DB *db.DB

	Accounts    *account.Store
	Trunks      *sip.Trunks
	Credit      *credit.Store
	Lookups     *lookup.Store
	Devices     *iot.Store
	Inbound     *inbound.Store
	Deliveries  *outbox.Store
	Messages    *message.Store
	Jobs        *job.Store
	SIMs        *sim.SIMs
	Pools       *sim.Pools
	Subscribers *sim.Subscribers
	Ledgers     *ledger.Store
	Usage       *usage.Store
	Calls       *sip.Calls
	Files       *file.Store
	Gateways    *gateway.Store
	Rules       *rule.Store
	Users       *user.Store
	Audit       *audit.Store
}

func newRecords(db *db.DB) *recordStores {
	return &recordStores{
		DB:          db,
		Accounts:    account.NewStore(db),
		Trunks:      sip.NewTrunks(db),
		Credit:      credit.NewStore(db),
		Lookups:     lookup.NewStore(db),
		Devices:     iot.NewStore(db, rule.OnDevice),
		Inbound:     inbound.NewStore(db),
		Deliveries:  outbox.NewStore(db),
		Messages:    message.NewStore(db),
		Jobs:        job.NewStore(db),
		SIMs:        sim.NewSIMs(db),
		Pools:       sim.NewPools(db),
		Subscribers: sim.NewSubscribers(db),
		Ledgers:     ledger.NewStore(db),
		Usage:       usage.NewStore(db),
		Calls:       sip.NewCalls(db),
		Files:       file.NewStore(db),
		Gateways:    gateway.NewStore(db),
		Rules:       rule.NewStore(db),
		Users:       user.NewStore(db),
		Audit:       audit.NewStore(db),
	}
}

// startTime is the longest time for which a start waits for an unreachable database.
const startTime = time.Minute

// openRecords opens the database. It waits for an unreachable database, and returns an error if
// the database refuses the connection or has a newer schema.
func (b *backends) openRecords(ctx context.Context, cfg config.Config, log *slog.Logger) (err error) {
	o := db.Options{
		URL: cfg.Database.URL, Dir: cfg.DataDir, Logger: log, Retention: cfg.Delivery.Retention, DeadRetention: cfg.Delivery.DeadRetention,
		Observe: b.timings.Backend("records"),
	}
	if b.primary != nil {
		o.Admit = b.primary.admit
	}
	ctx, cancel := context.WithTimeout(ctx, startTime)
	defer cancel()
	for {
		var database *db.DB
		if database, err = db.Open(ctx, o); err == nil {
			b.records = newRecords(database)
			break
		}
		if relay.KindOf(err) != relay.KindUnavailable || db.IsLoginRefused(err) || cfg.Database.URL == "" {
			if cfg.Database.URL == "" {
				return err
			}
			return databaseURLError(err)
		}
		log.Warn("waiting for the database", "error", err)
		if !relay.Sleep(ctx, time.Second) {
			return databaseURLError(err)
		}
	}
	b.closers = append(b.closers, b.records.close)
	if err := b.records.DB.Check(ctx); err != nil {
		log.Error("database check failed", "error", err)
	}
	note := b.records.DB.Engine()
	if cfg.Database.URL == "" {
		note = "sqlite, embedded"
		b.embedded = append(b.embedded, embeddedStore{b.records.DB, db.File, event.Kinds(), "changes over REST, SOAP and the admin API, and results of deliveries and sent messages"})
	}
	if err := b.records.DB.IdentityError(); err != nil {
		note += "; an old primary would not be recognised, because the server does not report its timeline"
		log.Warn("an old primary of PostgreSQL would not be recognised", "error", err)
	}
	b.list = append(b.list, admin.Backend{Name: "records", Note: note, Check: b.records.DB.Check})
	if b.records.DB.HasSeveralHosts() {
		logHosts(log, b.records.DB.HostErrors())
		hosts := func(context.Context) error { return b.records.DB.HostErrors() }
		b.list = append(b.list, admin.Backend{Name: "database hosts", Note: "postgresql", Check: hosts, Optional: true})
	}
	return nil
}

func databaseURLError(err error) error {
	return settingError("database.url (PENSTOCK_DATABASE_URL)", err)
}

// settingError adds the name of a setting to an error. It replaces an error of fields by the reasons.
func settingError(name string, err error) error {
	if err == nil {
		return nil
	}
	for _, reasons := range relay.FieldsOf(err) {
		err = errors.New(strings.Join(reasons, "; "))
	}
	return fmt.Errorf("%s: %w", name, err)
}

// statuses returns the store of the states of a gateway's events.
func (r *recordStores) statuses(node string) *event.Statuses { return event.NewStatuses(r.DB, node) }

// sweep deletes the expired records of all domains. After an error in one domain it continues with
// the other domains.
func (r *recordStores) sweep(ctx context.Context, now time.Time) error {
	var errs []error
	for _, sweep := range []func(context.Context, time.Time) error{
		r.Inbound.Sweep, r.Messages.Sweep, r.Jobs.Sweep, r.Devices.Sweep, r.Lookups.Sweep, r.Ledgers.Sweep, r.Usage.Sweep, r.Files.Sweep, r.Rules.Sweep, r.Users.Sweep,
	} {
		errs = append(errs, sweep(ctx, now))
	}
	return errors.Join(append(errs, r.Deliveries.Sweep(ctx))...)
}

// afterRestore prepares the records of a restored database. It empties the caches of all gateways,
// which may have records that the database lacks. If the halt holds, it sets the messages that
// were due before it to the state unknown, and returns the number of their parts.
func (r *recordStores) afterRestore(ctx context.Context, halt gateway.Halt) (unknown int, err error) {
	if err := errors.Join(r.DB.Invalidate(ctx), r.Messages.SkipIDs(ctx)); err != nil || !halt.IsActive() {
		return 0, err
	}
	return r.Messages.MarkUnknown(ctx, halt.Since, r.DB.Now(), halt.Reason())
}

func (r *recordStores) close() error { return r.DB.Close() }
