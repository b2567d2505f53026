package app

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/penstock/penstock/config"
	"github.com/penstock/penstock/delivery/checkpoints"
	"github.com/penstock/penstock/ingest/admin"
	"github.com/penstock/penstock/relay"
	"github.com/penstock/penstock/relay/account"
	"github.com/penstock/penstock/relay/ledger"
	"github.com/penstock/penstock/relay/ledger/vault"
	"github.com/penstock/penstock/relay/outbox"
)

// ledgerKeyFile is the file of the generated master key, in the data directory.
const ledgerKeyFile = "ledger-key"

// headsFile is the journal of the ledgers' heads that this gateway has seen.
const headsFile = "ledger-heads"

// makeMasterKey creates the master key of ledgers at the first start, unless one is
// configured.
func makeMasterKey(cfg config.Config, log *slog.Logger) error {
	path := filepath.Join(cfg.DataDir, ledgerKeyFile)
	if _, err := os.Stat(path); cfg.Ledger.MasterKey != "" || cfg.Ledger.MasterKeyFile != "" || !errors.Is(err, os.ErrNotExist) {
		return nil
	}
	if err := writeDurably(cfg.DataDir, ledgerKeyFile, vault.NewMasterKey()+"\n"); err != nil {
		return fmt.Errorf("data directory: %w", err)
	}
	log.Info("created a master key for ledgers and saved it to a file", "path", path)
	return nil
}

// masterKeys returns the master keys of ledgers, newest first: those of the
// settings, else that of the data directory.
func masterKeys(cfg config.Config) ([]string, error) {
	if keys := cfg.Ledger.MasterKeys(); len(keys) > 0 {
		return keys, nil
	}
	path := cfg.Ledger.MasterKeyFile
	if path == "" {
		path = filepath.Join(cfg.DataDir, ledgerKeyFile)
	}
	b, err := os.ReadFile(path)
	if err != nil {
		return nil, fmt.Errorf("master key of ledgers: %w", err)
	}
	keys := strings.Fields(string(b))
	if len(keys) == 0 {
		return nil, fmt.Errorf("master key of ledgers: %s is empty: restore it from a backup", path)
	}
	return keys, nil
}

// openLedgers creates the ledger service over a store. The keys that encrypt its
// secrets also encrypt those of accounts and tokens, and the inventory.
func openLedgers(r *recordStores, keys []string, heads ledger.Heads, events ledger.Events, o ledger.Options) (*ledger.Service, error) {
	v, err := vault.New(r.Ledgers, keys)
	if err != nil {
		return nil, err
	}
	r.Accounts.Sealer = v
	return ledger.New(ledger.Deps{Store: r.Ledgers, Vault: v, Jobs: r.Jobs, Events: events, Heads: heads, Now: time.Now}, o)
}

// openLedger opens the ledger service.
func (d *Gateway) openLedger(keys []string, events ledger.Events) error {
	heads, err := checkpoints.Open(filepath.Join(d.cfg.DataDir, headsFile), checkpoints.Options{PublishDir: d.cfg.Ledger.CheckpointDir})
	if err != nil {
		return err
	}
	d.closers = append(d.closers, func(context.Context) error { return heads.Close() })
	d.ledger, err = openLedgers(d.backends.records, keys, heads, events, ledger.Options{NotifyHeads: d.cfg.Ledger.CheckpointCallback})
	d.backends.list = append(d.backends.list, admin.Backend{Name: "ledgers", Note: "heads sealed by the master key", Check: d.checkLedgers})
	return err
}

// watchLedgers checks the ledgers' heads each minute and logs each fault once.
func (d *Gateway) watchLedgers(ctx context.Context) {
	told := ""
	for {
		now := ""
		if err := d.ledger.Check(ctx); err != nil && relay.KindOf(err) != relay.KindUnavailable {
			now = err.Error()
		}
		if now != "" && now != told && ctx.Err() == nil {
			d.log.Error("ALARM: ledgers do not match their signatures", "error", now)
		}
		told = now
		if !pause(ctx, time.Minute) {
			return
		}
	}
}

// renewKeys wraps all account keys by the newest master key, once. It retries while
// the database is down or the master key is wrong.
func (d *Gateway) renewKeys(ctx context.Context) {
	for {
		accounts, err := d.accounts.Accounts(ctx)
		err = errors.Join(err, d.ledger.RenewKeys(ctx, 0)) // the gateway's own
		for _, a := range accounts {
			err = errors.Join(err, d.ledger.RenewKeys(ctx, a.ID))
		}
		d.wrongKey.Store(errors.Is(err, vault.ErrMasterKey))
		if err == nil {
			d.log.Info("all account keys are wrapped by the newest master key")
			return
		}
		d.log.Error("cannot wrap account keys by the newest master key", "error", err)
		if !pause(ctx, time.Minute) {
			return
		}
	}
}

// checkLedgers reports whether account keys can be unwrapped, and whether the ledgers
// match their signatures.
func (d *Gateway) checkLedgers(ctx context.Context) error {
	if d.wrongKey.Load() {
		return admin.Reason("accounts' keys are wrapped by another master key: set ledger.master_key or ledger.master_key_file to the key that this database was used with, the new one in front of it")
	}
	return d.ledger.Check(ctx)
}

// callbackURL returns an account's callback URL, empty if it has none.
func (d *Gateway) callbackURL(ctx context.Context, acct account.ID) (string, error) {
	a, err := d.accounts.Account(ctx, acct)
	return a.CallbackURL, err
}

// events sends events to accounts' callback URLs.
func (d *Gateway) events() outbox.Caller {
	return outbox.Caller{
		CallbackURL: d.callbackURL, Store: d.backends.records.Deliveries, Dispatcher: d.queue, Lease: d.queue.Lease(), Now: time.Now,
	}
}
