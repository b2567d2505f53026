// Package recordstest opens the stores of all domains on one database, for tests that need
// several stores.
package recordstest

import (
	"testing"
	"time"

	"github.com/penstock/penstock/relay/account"
	"github.com/penstock/penstock/relay/audit"
	"github.com/penstock/penstock/relay/credit"
	"github.com/penstock/penstock/relay/db"
	"github.com/penstock/penstock/relay/db/dbtest"
	"github.com/penstock/penstock/relay/event"
	"github.com/penstock/penstock/relay/inbound"
	"github.com/penstock/penstock/relay/iot"
	"github.com/penstock/penstock/relay/job"
	"github.com/penstock/penstock/relay/ledger"
	"github.com/penstock/penstock/relay/lookup"
	"github.com/penstock/penstock/relay/message"
	"github.com/penstock/penstock/relay/outbox"
	"github.com/penstock/penstock/relay/relaytest"
	"github.com/penstock/penstock/relay/rule"
	"github.com/penstock/penstock/relay/sim"
	"github.com/penstock/penstock/relay/sip"
	"github.com/penstock/penstock/relay/usage"
	"github.com/penstock/penstock/relay/user"
)

// Records has the stores of all domains.
type Records struct {
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
	Rules       *rule.Store
	Users       *user.Store
	Audit       *audit.Store
}

// Open opens the stores on a new SQLite database.
func Open(t testing.TB) *Records {
	t.Helper()
	return OpenAt(t, time.Now)
}

// OpenAt does the same as Open, with now as the clock.
func OpenAt(t testing.TB, now func() time.Time) *Records {
	t.Helper()
	return New(dbtest.Open(t, db.Options{Now: now}))
}

// OpenURL opens the stores on a PostgreSQL database.
func OpenURL(t testing.TB, url string) *Records {
	t.Helper()
	return New(dbtest.Open(t, db.Options{URL: url}))
}

// New returns the stores on an open database.
func New(db *db.DB) *Records {
	return &Records{
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
		Rules:       rule.NewStore(db),
		Users:       user.NewStore(db),
		Audit:       audit.NewStore(db),
	}
}

// Customers saves account 1, acme, with the permissions, and account 2, globex. The tokens acme and
// globex have the default scopes; the token iot of acme has only the scope iot.
func (r *Records) Customers(t testing.TB, permissions ...string) {
	t.Helper()
	for _, a := range []account.Account{{ID: 1, Name: "acme", Permissions: permissions}, {ID: 2, Name: "globex"}} {
		_, err := r.Accounts.PutAccount(t.Context(), a)
		relaytest.NoError(t, err)
	}
	relaytest.NoError(t, r.Accounts.PutTokens(t.Context(), []account.Token{
		{Hash: account.HashToken("acme"), Account: 1, Scopes: account.DefaultScopes()},
		{Hash: account.HashToken("globex"), Account: 2, Scopes: account.DefaultScopes()},
		{Hash: account.HashToken("iot"), Account: 1, Scopes: []account.Scope{account.IoT}},
	}))
}

// Statuses returns the statuses of a node's events.
func (r *Records) Statuses(node string) *event.Statuses { return event.NewStatuses(r.DB, node) }

// Close closes the database.
func (r *Records) Close() error { return r.DB.Close() }
