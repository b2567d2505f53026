package app

import (
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/penstock/penstock/config"
	"github.com/penstock/penstock/relay"
	"github.com/penstock/penstock/relay/account"
	"github.com/penstock/penstock/relay/db"
	"github.com/penstock/penstock/relay/db/dbtest"
	"github.com/penstock/penstock/relay/ledger"
	"github.com/penstock/penstock/relay/ledger/vault"
	"github.com/penstock/penstock/relay/relaytest"
)

func TestMasterKeysComeFromOnePlace(t *testing.T) {
	t.Parallel()
	a, b := vault.NewMasterKey(), vault.NewMasterKey()
	dir := t.TempDir()
	file := filepath.Join(dir, "keys")
	relaytest.NoError(t, os.WriteFile(file, []byte(a+"\n"+b+"\n"), 0o600))
	quiet := slog.New(slog.DiscardHandler)
	for _, tc := range []struct {
		name   string
		ledger config.Ledger
		want   []string
	}{
		{"the setting, newest first", config.Ledger{MasterKey: a + ", " + b}, []string{a, b}},
		{"a file, a line each", config.Ledger{MasterKeyFile: file}, []string{a, b}},
	} {
		t.Run(tc.name, func(t *testing.T) {
			cfg := config.Config{DataDir: t.TempDir(), Ledger: tc.ledger}
			relaytest.NoError(t, createMasterKey(cfg, quiet))
			if got, err := masterKeys(cfg); err != nil || !slices.Equal(got, tc.want) {
				t.Errorf("%q, %v", got, err)
			}
			if made, _ := os.ReadDir(cfg.DataDir); len(made) > 0 {
				t.Errorf("a key was made: %v", made)
			}
		})
	}
	cfg := config.Config{DataDir: dir}
	if _, err := masterKeys(cfg); err == nil {
		t.Error("a key that nobody made")
	}
	relaytest.NoError(t, createMasterKey(cfg, quiet))
	first, err := masterKeys(cfg)
	relaytest.NoError(t, err)
	relaytest.NoError(t, createMasterKey(cfg, quiet))
	info, err := os.Stat(filepath.Join(dir, ledgerKeyFile))
	relaytest.NoError(t, err)
	if again, err := masterKeys(cfg); err != nil || strings.Join(again, "") != first[0] || info.Mode().Perm() != fs.FileMode(0o600) {
		t.Errorf("%q, then %q, mode %s, %v", first, again, info.Mode(), err)
	}
}

// A database that was replaced in place answers on the same connections. Its gateways
// find the other database at the next heartbeat.
func TestNothingIsSealedWithTheKeyOfADatabaseThatWasReplaced(t *testing.T) {
	t.Parallel()
	dbtest.OnEvery(t, func(t *testing.T, open func(t *testing.T) *db.DB) {
		store, ctx, key := open(t), t.Context(), vault.NewMasterKey()
		keysets := ledger.NewStore(store)
		seal := func() *vault.Vault {
			v, err := vault.New(keysets, []string{key})
			relaytest.NoError(t, err)
			relaytest.NoError(t, createGatewayKey(ctx, v))
			return v
		}
		store.SetSealer(&recordSealer{vault: seal()})
		records := account.NewStore(store)
		put := func(name string) error {
			_, err := records.PutAccount(ctx, account.Account{Name: name})
			return err
		}
		relaytest.NoError(t, put("before"))

		relaytest.NoError(t, store.RunAll(ctx, "test", db.Do("DELETE FROM ledger_sealed"), db.Do("DELETE FROM account")))
		seal() // with the key of the other database
		if err := put("first"); relay.KindOf(err) != relay.KindUnavailable {
			t.Errorf("an account sealed with the old key: error %v", err)
		}
		relaytest.Eventually(t, "an account is saved with the key of the other database", func() (any, bool) { err := put("second"); return err, err == nil })
		store.SetSealer(&recordSealer{vault: seal()})
		all := relaytest.Must(records.Accounts(ctx))(t)
		relaytest.Equal(t, "accounts that open", []any{len(all), all[0].Name, all[0].Unopened}, []any{1, "second", false})

		relaytest.NoError(t, store.RunAll(ctx, "test", db.Do("DELETE FROM ledger_sealed"), db.Do("DELETE FROM account")))
		relaytest.Eventually(t, "an account is saved with a new key, since the database has none", func() (any, bool) { err := put("third"); return err, err == nil })
	})
}
