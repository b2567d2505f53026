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

// Unknown credentials get status 503 while the inventory is pending.
func TestTheInventoryIsPendingUntilItIsAppliedOrRefused(t *testing.T) {
	t.Parallel()
	for name, body := range map[string]string{
		"applied": "accounts: [{name: acme}]",
		"refused": "accounts: [{name: acme, id: 1}]",
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			server := dbtest.StartPostgres(t)
			records := recordstest.OpenURL(t, server.NewDatabase(t))
			inv := inventory.New(inventory.Deps{
				Store: inventory.NewStore(records.DB), Accounts: records.Accounts, Devices: records.Devices, Relays: records.Inbound, Ledgers: records.Ledgers, Networks: records.Lookups, Credit: records.Credit,
				Trunks: records.Trunks, SIMs: records.SIMs, Now: time.Now,
			})
			path := filepath.Join(t.TempDir(), "inventory.yaml")
			relaytest.NoError(t, os.WriteFile(path, []byte(body), 0o600))
			g := &Gateway{cfg: config.Config{Inventory: path}, log: slog.New(slog.DiscardHandler), background: t.Context()}
			_, err := records.Accounts.PutAccount(t.Context(), account.Account{ID: 1, Name: "other"})
			relaytest.NoError(t, err)
			server.Kill()
			relaytest.NoError(t, g.declareConfigured(t.Context(), inv))
			relaytest.Equal(t, "undeclared while the database is down", g.undeclared.Load(), true)
			server.Start()
			g.running.Wait()
			relaytest.Equal(t, "undeclared after the database is back", g.undeclared.Load(), false)
		})
	}
}
