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

func TestMasterKeysComeFromTheSettingOrAFile(t *testing.T) {
	t.Parallel()
	a, b := vault.NewMasterKey(), vault.NewMasterKey()
	dir := t.TempDir()
	file := filepath.Join(dir, "keys")
	relaytest.NoError(t, os.WriteFile(file, []byte(a+"\n"+b+"\n"), 0o600))
	discard := slog.New(slog.DiscardHandler)
	for _, tc := range []struct {
		name   string
		ledger config.Ledger
		want   []string
	}{
		{"a setting with two keys", config.Ledger{MasterKey: a + ", " + b}, []string{a, b}},
		{"a file with two keys", config.Ledger{MasterKeyFile: file}, []string{a, b}},
	} {
		t.Run(tc.name, func(t *testing.T) {
			cfg := config.Config{DataDir: t.TempDir(), Ledger: tc.ledger}
			relaytest.NoError(t, createMasterKey(cfg, discard))
			if got, err := masterKeys(cfg); err != nil || !slices.Equal(got, tc.want) {
				t.Errorf("master keys = %q, %v, want %q", got, err, tc.want)
			}
			if files, _ := os.ReadDir(cfg.DataDir); len(files) > 0 {
				t.Errorf("files in the data directory = %v, want none", files)
			}
		})
	}
	cfg := config.Config{DataDir: dir}
	if _, err := masterKeys(cfg); err == nil {
		t.Error("masterKeys succeeded before a key was created, want an error")
	}
	relaytest.NoError(t, createMasterKey(cfg, discard))
	keys, err := masterKeys(cfg)
	relaytest.NoError(t, err)
	relaytest.NoError(t, createMasterKey(cfg, discard))
	info, err := os.Stat(filepath.Join(dir, ledgerKeyFile))
	relaytest.NoError(t, err)
	if reread, err := masterKeys(cfg); err != nil || strings.Join(reread, "") != keys[0] || info.Mode().Perm() != fs.FileMode(0o600) {
		t.Errorf("keys = %q, then %q with mode %s, error %v; want the same keys and mode 0600", keys, reread, info.Mode(), err)
	}
}

// A database that was replaced in place is used over the same connections. The gateways detect the
// replacement at the next heartbeat.
func TestNothingIsSealedWithTheKeyOfAReplacedDatabase(t *testing.T) {
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
		saveAccount := func(accountName string) error {
			_, err := records.PutAccount(ctx, account.Account{Name: accountName})
			return err
		}
		relaytest.NoError(t, saveAccount("before"))

		relaytest.NoError(t, store.RunAll(ctx, "test", db.Do("DELETE FROM ledger_sealed"), db.Do("DELETE FROM account")))
		seal() // with the key of the other database
		if err := saveAccount("first"); relay.KindOf(err) != relay.KindUnavailable {
			t.Errorf("an account sealed with the old key: error = %v, want KindUnavailable", err)
		}
		relaytest.Eventually(t, "an account is saved with the key of the other database", func() (any, bool) { err := saveAccount("second"); return err, err == nil })
		store.SetSealer(&recordSealer{vault: seal()})
		accounts := relaytest.Must(records.Accounts(ctx))(t)
		relaytest.Equal(t, "accounts that were decrypted", []any{len(accounts), accounts[0].Name, accounts[0].Undecryptable}, []any{1, "second", false})

		relaytest.NoError(t, store.RunAll(ctx, "test", db.Do("DELETE FROM ledger_sealed"), db.Do("DELETE FROM account")))
		relaytest.Eventually(t, "an account is saved with a new key, since the database has none", func() (any, bool) { err := saveAccount("third"); return err, err == nil })
	})
}
