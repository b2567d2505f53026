package app

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"sync/atomic"
	"time"

	"github.com/penstock/penstock/config"
	"github.com/penstock/penstock/delivery/checkpoints"
	"github.com/penstock/penstock/delivery/durable"
	"github.com/penstock/penstock/ingest/admin"
	"github.com/penstock/penstock/relay"
	"github.com/penstock/penstock/relay/account"
	"github.com/penstock/penstock/relay/db"
	"github.com/penstock/penstock/relay/job"
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
	if err := durable.WriteFile(path, []byte(vault.NewMasterKey()+"\n"), 0o600); err != nil {
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
	path := masterKeyPath(cfg)
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

// masterKeyPath is the file of the master keys, unless the settings have them.
func masterKeyPath(cfg config.Config) string {
	return cmp.Or(cfg.Ledger.MasterKeyFile, filepath.Join(cfg.DataDir, ledgerKeyFile))
}

// recordSealer seals columns of the database by the gateway's own key.
type recordSealer struct {
	vault   *vault.Vault
	loading atomic.Bool
}

// ofGateway is the holder of the gateway's own key.
const ofGateway relay.AccountID = 0

// Seal seals a value, mostly in a transaction. A key that is missing, because the database
// was replaced, is made outside of it: it would wait for itself.
func (s *recordSealer) Seal(plain []byte, owner string) ([]byte, error) {
	sealed, err := s.vault.SealLoaded(ofGateway, plain, owner)
	if err == nil {
		return sealed, nil
	}
	ctx, cancel := context.WithTimeout(context.Background(), 2*time.Second)
	defer cancel()
	if err := s.vault.Load(ctx, ofGateway); err == nil {
		sealed, err := s.vault.SealLoaded(ofGateway, plain, owner)
		if err == nil {
			return sealed, nil
		}
	}
	if s.loading.CompareAndSwap(false, true) {
		go func() {
			defer s.loading.Store(false)
			ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
			defer cancel()
			_ = makeGatewayKey(ctx, s.vault) // the next record that is sealed tries again
		}()
	}
	return nil, err
}

func (s *recordSealer) Open(sealed []byte, owner string) ([]byte, error) {
	return s.vault.OpenLoaded(ofGateway, sealed, owner)
}

func (s *recordSealer) Load(ctx context.Context) error { return s.vault.Load(ctx, ofGateway) }

func (s *recordSealer) Verify(ctx context.Context, tx *db.Tx, sealed []byte, owner string) error {
	keyset, err := ledger.Keyset(ctx, tx, ofGateway)
	if err = db.IgnoreNotFound(err); err != nil {
		return err
	}
	return s.vault.Verify(ofGateway, keyset, sealed, owner)
}

// newLedgers creates the ledger service over a store. The vault of its secrets also
// encrypts the records of the database that hold some.
func newLedgers(r *recordStores, keys []string, heads ledger.Heads, events outbox.Notifier, run job.Submitter, notifyHeads bool) (*ledger.Service, *vault.Vault, error) {
	v, err := vault.New(r.Ledgers, keys)
	if err != nil {
		return nil, nil, err
	}
	r.DB.SetSealer(&recordSealer{vault: v})
	s := ledger.New(ledger.Deps{Store: r.Ledgers, Vault: v, Jobs: r.Jobs, Submit: run, Events: events, Heads: heads, NotifyHeads: notifyHeads, Now: time.Now})
	return s, v, nil
}

// makeGatewayKey makes the gateway's own key if it is missing, because a transaction cannot
// make it. It waits while the database is down.
func makeGatewayKey(ctx context.Context, v *vault.Vault) error {
	for {
		_, err := v.Seal(ctx, ofGateway, nil, "")
		if errors.Is(err, vault.ErrMasterKey) { // renewKeys reports it
			return nil
		}
		if relay.KindOf(err) != relay.KindUnavailable || !relay.Sleep(ctx, time.Second) {
			return err
		}
	}
}

// ledgerService is the service for ledgers with its keys, which this gateway checks
// while it runs.
type ledgerService struct {
	*ledger.Service
	vault     *vault.Vault
	accounts  *account.Store
	masterKey string       // the newest
	wrongKey  atomic.Bool  // accounts' keys are wrapped by another master key
	faults    atomic.Int64 // of the last audit
	log       *slog.Logger
}

func (g *Gateway) openLedgers(ctx context.Context, records *recordStores, events outbox.Notifier, run job.Submitter) (*ledgerService, error) {
	keys, err := masterKeys(g.cfg)
	if err != nil {
		return nil, err
	}
	heads, err := checkpoints.Open(filepath.Join(g.cfg.DataDir, headsFile), g.cfg.Ledger.CheckpointDir)
	if err != nil {
		return nil, err
	}
	g.onClose(heads.Close)
	service, keyVault, err := newLedgers(records, keys, heads, events, run, g.cfg.Ledger.CheckpointCallback)
	if err != nil {
		return nil, err
	}
	if err := makeGatewayKey(ctx, keyVault); err != nil {
		return nil, err
	}
	l := &ledgerService{Service: service, vault: keyVault, accounts: records.Accounts, masterKey: keys[0], log: g.log}
	g.check(admin.Backend{Name: "ledgers", Note: "heads sealed by the master key", Check: l.check})
	g.onStart(l.renewKeys, l.watch, l.audit)
	return l, nil
}

// watch checks the ledgers' heads each minute and logs each fault once.
func (l *ledgerService) watch(ctx context.Context) {
	reason := ""
	for {
		now := ""
		if err := l.Check(ctx); err != nil && relay.KindOf(err) != relay.KindUnavailable {
			now = err.Error()
		}
		if now != "" && now != reason && ctx.Err() == nil {
			l.log.Error("ALARM: ledgers do not match their signatures", "error", now)
		}
		reason = now
		if !relay.Sleep(ctx, time.Minute) {
			return
		}
	}
}

// Times between audits. With its own duration, an audit follows another within a day.
const (
	auditEvery   = 20 * time.Hour
	auditRepairs = time.Hour   // after one that found faults
	auditRetry   = time.Minute // after one that was not completed
)

// audit verifies all ledgers after the start and then at least daily: it finds entries
// that were removed from the end of a token's.
func (l *ledgerService) audit(ctx context.Context) {
	for {
		wait := auditEvery
		faults, err := l.Audit(ctx)
		if ctx.Err() != nil {
			return
		}
		if err == nil || int64(faults) > l.faults.Load() { // it may have left out ledgers that had some
			l.faults.Store(int64(faults))
		}
		if faults > 0 {
			l.log.Error("ALARM: the audit of the ledgers found faults; penstock ledger verify names them", "faults", faults)
			wait = auditRepairs
		}
		if err != nil {
			l.log.Warn("the audit of the ledgers was not completed", "error", err)
			wait = auditRetry
		}
		if !relay.Sleep(ctx, wait) {
			return
		}
	}
}

// renewKeys wraps all account keys by the newest master key, once. It retries while
// the database is down or the master key is wrong.
func (l *ledgerService) renewKeys(ctx context.Context) {
	for {
		accounts, err := l.accounts.Accounts(ctx)
		err = errors.Join(err, l.vault.Renew(ctx, ofGateway))
		for _, a := range accounts {
			err = errors.Join(err, l.vault.Renew(ctx, a.ID))
		}
		l.wrongKey.Store(errors.Is(err, vault.ErrMasterKey))
		if err == nil {
			l.log.Info("all account keys are wrapped by the newest master key")
			return
		}
		l.log.Error("cannot wrap account keys by the newest master key", "error", err)
		if !relay.Sleep(ctx, time.Minute) {
			return
		}
	}
}

// check reports whether account keys can be unwrapped, and whether the ledgers
// match their signatures.
func (l *ledgerService) check(ctx context.Context) error {
	if l.wrongKey.Load() {
		return admin.Reason("accounts' keys are wrapped by another master key: set ledger.master_key or ledger.master_key_file to the key that this database was used with, the new one in front of it; if the file ledger-key was lost, restore it from a backup")
	}
	return l.Check(ctx)
}
