package app

import (
	"log/slog"
	"os"
	"path/filepath"
	"testing"
	"time"

	"github.com/penstock/penstock/config"
	"github.com/penstock/penstock/relay/account"
	"github.com/penstock/penstock/relay/db/dbtest"
	"github.com/penstock/penstock/relay/inventory"
	"github.com/penstock/penstock/relay/recordstest"
	"github.com/penstock/penstock/relay/relaytest"
)

// Unknown credentials get 503 until the inventory is applied or refused.
func TestCredentialsAreUnsureWhileTheInventoryIsNotApplied(t *testing.T) {
	t.Parallel()
	for name, body := range map[string]string{
		"applied": "accounts: [{name: acme}]",
		"refused": "accounts: [{name: acme, id: 1}]",
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			server := dbtest.StartPostgres(t)
			db := recordstest.OpenURL(t, server.NewDatabase(t))
			inv := inventory.New(inventory.Deps{
				Store: inventory.NewStore(db.DB), Accounts: db.Accounts, Devices: db.Devices, Relays: db.Inbound, Ledgers: db.Ledgers, Networks: db.Lookups, Credit: db.Credit,
				Trunks: db.Trunks, SIMs: db.SIMs, Now: time.Now,
			})
			path := filepath.Join(t.TempDir(), "inventory.yaml")
			relaytest.NoError(t, os.WriteFile(path, []byte(body), 0o600))
			d := &Gateway{cfg: config.Config{Inventory: path}, log: slog.New(slog.DiscardHandler), life: t.Context()}
			_, err := db.Accounts.PutAccount(t.Context(), account.Account{ID: 1, Name: "other"})
			relaytest.NoError(t, err)
			server.Kill()
			relaytest.NoError(t, d.declareConfigured(t.Context(), inv))
			relaytest.Equal(t, "undeclared while the database is down", d.undeclared.Load(), true)
			server.Start()
			d.running.Wait()
			relaytest.Equal(t, "undeclared afterwards", d.undeclared.Load(), false)
		})
	}
}
