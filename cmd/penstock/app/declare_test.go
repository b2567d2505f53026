package app

import (
	"context"
	"log/slog"
	"os"
	"path/filepath"
	"sync/atomic"
	"testing"
	"time"

	"github.com/penstock/penstock/config"
	"github.com/penstock/penstock/relay"
	"github.com/penstock/penstock/relay/account"
	"github.com/penstock/penstock/relay/inventory"
	"github.com/penstock/penstock/relay/recordstest"
	"github.com/penstock/penstock/relay/relaytest"
)

// absentAccounts are accounts in a database that is down until it is there.
type absentAccounts struct {
	*account.Store
	there *atomic.Bool
}

func (a absentAccounts) Inventory(ctx context.Context) ([]byte, error) {
	if !a.there.Load() {
		return nil, relay.Errorf(relay.KindUnavailable, "down")
	}
	return a.Store.Inventory(ctx)
}

// Wrong credentials are unsure from the start until the inventory is applied or refused.
func TestCredentialsAreUnsureWhileTheInventoryIsNotApplied(t *testing.T) {
	t.Parallel()
	for name, body := range map[string]string{
		"applied": "accounts: [{name: acme}]",
		"refused": "accounts: [{name: acme, id: 1}]",
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			db, there := recordstest.Open(t), new(atomic.Bool)
			inv := inventory.New(inventory.Deps{
				Accounts: absentAccounts{db.Accounts, there}, Devices: db.Devices, Relays: db.Inbound, Ledgers: db.Ledgers, Networks: db.Lookups, Credit: db.Credit,
				Trunks: db.Trunks, SIMs: db.SIMs, Now: time.Now,
			})
			path := filepath.Join(t.TempDir(), "inventory.yaml")
			relaytest.NoError(t, os.WriteFile(path, []byte(body), 0o600))
			d := &Gateway{cfg: config.Config{Inventory: path}, log: slog.New(slog.DiscardHandler), life: t.Context()}
			_, err := db.Accounts.PutAccount(t.Context(), account.Account{ID: 1, Name: "other"})
			relaytest.NoError(t, err, d.declareConfigured(t.Context(), inv))
			relaytest.Equal(t, "undeclared while the database is down", d.undeclared.Load(), true)
			there.Store(true)
			d.running.Wait()
			relaytest.Equal(t, "undeclared afterwards", d.undeclared.Load(), false)
		})
	}
}
