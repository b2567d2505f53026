// Package records puts the stores of every domain together over one database.
package records

import (
	"context"
	"errors"
	"time"

	"github.com/penstock/penstock/relay/event"
	"github.com/penstock/penstock/relay/sqlstore"
	"github.com/penstock/penstock/relay/sqlstore/accounts"
	"github.com/penstock/penstock/relay/sqlstore/audits"
	"github.com/penstock/penstock/relay/sqlstore/calls"
	"github.com/penstock/penstock/relay/sqlstore/credit"
	"github.com/penstock/penstock/relay/sqlstore/deliveries"
	"github.com/penstock/penstock/relay/sqlstore/devices"
	"github.com/penstock/penstock/relay/sqlstore/events"
	"github.com/penstock/penstock/relay/sqlstore/files"
	"github.com/penstock/penstock/relay/sqlstore/gateways"
	"github.com/penstock/penstock/relay/sqlstore/inbound"
	"github.com/penstock/penstock/relay/sqlstore/jobs"
	"github.com/penstock/penstock/relay/sqlstore/ledgers"
	"github.com/penstock/penstock/relay/sqlstore/lookups"
	"github.com/penstock/penstock/relay/sqlstore/messages"
	"github.com/penstock/penstock/relay/sqlstore/rules"
	"github.com/penstock/penstock/relay/sqlstore/sims"
	"github.com/penstock/penstock/relay/sqlstore/usages"
	"github.com/penstock/penstock/relay/sqlstore/users"
)

// Records are the stores of every domain.
type Records struct {
	DB *sqlstore.DB

	Accounts    *accounts.Store
	Trunks      *accounts.Trunks
	Credit      *credit.Store
	Lookups     *lookups.Store
	Devices     *devices.Store
	Inbound     *inbound.Store
	Deliveries  *deliveries.Store
	Messages    *messages.Store
	Jobs        *jobs.Store
	SIMs        *sims.SIMs
	Pools       *sims.Pools
	Subscribers *sims.Subscribers
	Orders      *sims.Orders
	Ledgers     *ledgers.Store
	Usage       *usages.Store
	Calls       *calls.Store
	Files       *files.Store
	Gateways    *gateways.Store
	Rules       *rules.Store
	Users       *users.Store
	Audit       *audits.Store
}

// Open opens the database, see sqlstore.Open.
func Open(ctx context.Context, o sqlstore.Options) (*Records, error) {
	db, err := sqlstore.Open(ctx, o)
	if err != nil {
		return nil, err
	}
	return New(db), nil
}

// New returns the stores over a database that is open.
func New(db *sqlstore.DB) *Records {
	return &Records{
		DB: db, Accounts: accounts.New(db), Trunks: accounts.NewTrunks(db), Credit: credit.New(db), Lookups: lookups.New(db),
		Devices: devices.New(db), Inbound: inbound.New(db), Deliveries: deliveries.New(db), Messages: messages.New(db), Jobs: jobs.New(db),
		SIMs: sims.NewSIMs(db), Pools: sims.NewPools(db), Subscribers: sims.NewSubscribers(db), Orders: sims.NewOrders(db),
		Ledgers: ledgers.New(db), Usage: usages.New(db), Calls: calls.New(db), Files: files.New(db), Gateways: gateways.New(db), Rules: rules.New(db),
		Users: users.New(db), Audit: audits.New(db),
	}
}

// Statuses returns the states of a node's events.
func (r *Records) Statuses(node string) event.Statuses { return events.New(r.DB, node) }

// Sweep deletes what has expired, of every domain; one that fails keeps no other
// from it.
func (r *Records) Sweep(ctx context.Context, now time.Time) error {
	var errs []error
	for _, sweep := range []func(context.Context, time.Time) error{
		r.Inbound.Sweep, r.Messages.Sweep, r.Jobs.Sweep, r.Devices.Sweep, r.Lookups.Sweep, r.Ledgers.Sweep, r.Usage.Sweep, r.Files.Sweep, r.Rules.Sweep, r.Users.Sweep,
	} {
		errs = append(errs, sweep(ctx, now))
	}
	return errors.Join(append(errs, r.Deliveries.Sweep(ctx))...)
}

// Close closes the database.
func (r *Records) Close() error { return r.DB.Close() }
