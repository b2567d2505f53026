package main

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
	"github.com/penstock/penstock/relay/account"
	"github.com/penstock/penstock/relay/ledger"
	"github.com/penstock/penstock/relay/ledger/vault"
	"github.com/penstock/penstock/relay/outbox"
	"github.com/penstock/penstock/relay/sqlstore/records"
)

// ledgerKeyFile is where the data directory keeps the master key that it made.
const ledgerKeyFile = "ledger-key"

// makeMasterKey makes the master key of ledgers at the first start, unless the
// settings have one.
func makeMasterKey(cfg config.Config, log *slog.Logger) error {
	path := filepath.Join(cfg.DataDir, ledgerKeyFile)
	if _, err := os.Stat(path); cfg.Ledger != (config.Ledger{}) || !errors.Is(err, os.ErrNotExist) {
		return nil
	}
	if err := writeDurably(cfg.DataDir, ledgerKeyFile, vault.NewMasterKey()+"\n"); err != nil {
		return fmt.Errorf("data directory: %w", err)
	}
	log.Info("a master key of ledgers was made, it is kept in a file", "path", path)
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
	return strings.Fields(string(b)), nil
}

// openLedgers makes the use cases of ledgers over a store.
func openLedgers(r *records.Records, keys []string, events ledger.Events) (*ledger.Service, error) {
	v, err := vault.New(r.Ledgers, keys)
	if err != nil {
		return nil, err
	}
	return ledger.New(ledger.Deps{Store: r.Ledgers, Vault: v, Jobs: r.Jobs, Events: events, Now: time.Now}, ledger.Options{})
}

// renewKeys wraps every account's keys by the newest master key, once; while
// the database is down it is tried again.
func (d *daemon) renewKeys(ctx context.Context) {
	for {
		accounts, err := d.accounts.Accounts(ctx)
		for _, a := range accounts {
			err = errors.Join(err, d.tokens.RenewKeys(ctx, a.ID))
		}
		if err == nil {
			d.log.Info("every account's keys are wrapped by the newest master key")
			return
		}
		d.log.Error("keys of ledgers were not wrapped by the newest master key", "error", err)
		if !pause(ctx, time.Minute) {
			return
		}
	}
}

// callbackURL returns where an account is told what happened.
func (d *daemon) callbackURL(ctx context.Context, acct account.ID) (string, error) {
	a, err := d.accounts.Account(ctx, acct)
	return a.CallbackURL, err
}

// events tells accounts at their callback URLs what happened.
func (d *daemon) events() outbox.Caller {
	return outbox.Caller{
		CallbackURL: d.callbackURL, Store: d.back.records.Deliveries, Dispatcher: d.queue, Lease: d.queue.Lease(), Now: time.Now,
	}
}
