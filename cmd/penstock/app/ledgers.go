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

// ledgerKeyFile contains the generated master key, in the data directory.
const ledgerKeyFile = "ledger-key"

// headsFile contains the ledger heads that this gateway has verified last.
const headsFile = "ledger-heads"

// createMasterKey creates the master key of ledgers at the first start, unless one is configured.
func createMasterKey(cfg config.Config, log *slog.Logger) error {
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

// masterKeys returns the master keys of ledgers, newest first, from the settings or else from the
// file.
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

// masterKeyPath returns the path of the file with the master keys.
func masterKeyPath(cfg config.Config) string {
	return cmp.Or(cfg.Ledger.MasterKeyFile, filepath.Join(cfg.DataDir, ledgerKeyFile))
}

// recordSealer seals columns of the database with the key of the gateway.
type recordSealer struct {
	vault   *vault.Vault
	loading atomic.Bool
}

// gatewayKey is the owner of the gateway's own key, in place of an account.
const gatewayKey relay.AccountID = 0

// Seal seals a value, usually in a transaction. If the key is missing, because the database was
// replaced, Seal creates the key in the background: writing the key would wait for the transaction
// to end.
func (s *recordSealer) Seal(plain []byte, owner string) ([]byte, error) {
	sealed, err := s.vault.SealLoaded(gatewayKey, plain, owner)
	if err == nil {
		return sealed, nil
	}
	ctx, cancel := context.WithTimeout(context.Background(), 2*time.Second)
	defer cancel()
	if err := s.vault.Load(ctx, gatewayKey); err == nil {
		sealed, err := s.vault.SealLoaded(gatewayKey, plain, owner)
		if err == nil {
			return sealed, nil
		}
	}
	if s.loading.CompareAndSwap(false, true) {
		go func() {
			defer s.loading.Store(false)
			ctx, cancel := context.WithTimeout(context.Background(), 10*time.Second)
			defer cancel()
			_ = createGatewayKey(ctx, s.vault) // the next Seal tries again
		}()
	}
	return nil, err
}

func (s *recordSealer) Open(sealed []byte, owner string) ([]byte, error) {
	return s.vault.OpenLoaded(gatewayKey, sealed, owner)
}

func (s *recordSealer) Load(ctx context.Context) error { return s.vault.Load(ctx, gatewayKey) }

func (s *recordSealer) Verify(ctx context.Context, tx *db.Tx, sealed []byte, owner string) error {
	keyset, err := ledger.Keyset(ctx, tx, gatewayKey)
	if err = db.IgnoreNotFound(err); err != nil {
		return err
	}
	return s.vault.Verify(gatewayKey, keyset, sealed, owner)
}

// newLedgers returns the ledger service and its vault, which also seals columns of the database.
func newLedgers(r *recordStores, keys []string, heads ledger.Heads, events outbox.Notifier, submitter job.Submitter, notifyHeads bool) (*ledger.Service, *vault.Vault, error) {
	v, err := vault.New(r.Ledgers, keys)
	if err != nil {
		return nil, nil, err
	}
	r.DB.SetSealer(&recordSealer{vault: v})
	s := ledger.New(ledger.Deps{Store: r.Ledgers, Vault: v, Jobs: r.Jobs, Submit: submitter, Events: events, Heads: heads, NotifyHeads: notifyHeads, Now: time.Now})
	return s, v, nil
}

// createGatewayKey creates the key of the gateway if it is missing. It waits while the database is
// down.
func createGatewayKey(ctx context.Context, v *vault.Vault) error {
	for {
		_, err := v.Seal(ctx, gatewayKey, nil, "")
		if errors.Is(err, vault.ErrMasterKey) { // renewKeys reports it
			return nil
		}
		if relay.KindOf(err) != relay.KindUnavailable || !relay.Sleep(ctx, time.Second) {
			return err
		}
	}
}

// ledgerService is the ledger service with checks that run in the background.
type ledgerService struct {
	*ledger.Service
	vault     *vault.Vault
	accounts  *account.Store
	masterKey string       // the newest master key
	wrongKey  atomic.Bool  // true if keys of accounts are encrypted with another master key
	faults    atomic.Int64 // number of faults that the last audit found
	log       *slog.Logger
}

func (g *Gateway) openLedgers(ctx context.Context, records *recordStores, events outbox.Notifier, submitter job.Submitter) (*ledgerService, error) {
	keys, err := masterKeys(g.cfg)
	if err != nil {
		return nil, err
	}
	heads, err := checkpoints.Open(filepath.Join(g.cfg.DataDir, headsFile), g.cfg.Ledger.CheckpointDir)
	if err != nil {
		return nil, err
	}
	g.onClose(heads.Close)
	service, keyVault, err := newLedgers(records, keys, heads, events, submitter, g.cfg.Ledger.CheckpointCallback)
	if err != nil {
		return nil, err
	}
	if err := createGatewayKey(ctx, keyVault); err != nil {
		return nil, err
	}
	l := &ledgerService{Service: service, vault: keyVault, accounts: records.Accounts, masterKey: keys[0], log: g.log}
	g.addCheck(admin.Backend{Name: "ledgers", Note: "heads sealed by the master key", Check: l.check})
	g.onStart(l.renewKeys, l.watch, l.audit)
	return l, nil
}

// watch checks the heads of the ledgers each minute and logs each fault once.
func (l *ledgerService) watch(ctx context.Context) {
	logged := ""
	for {
		fault := ""
		if err := l.Check(ctx); err != nil && relay.KindOf(err) != relay.KindUnavailable {
			fault = err.Error()
		}
		if fault != "" && fault != logged && ctx.Err() == nil {
			l.log.Error("ALARM: ledgers do not match their signatures", "error", fault)
		}
		logged = fault
		if !relay.Sleep(ctx, time.Minute) {
			return
		}
	}
}

// The pauses between audits. With auditEvery, an audit of up to four hours runs daily.
const (
	auditEvery       = 20 * time.Hour
	auditAfterFaults = time.Hour   // after an audit that found faults
	auditRetry       = time.Minute // after an incomplete audit
)

// audit verifies all ledgers after the start and then daily. Unlike Check, it finds entries that
// were deleted from the end of a token's history.
func (l *ledgerService) audit(ctx context.Context) {
	for {
		wait := auditEvery
		faults, err := l.Audit(ctx)
		if ctx.Err() != nil {
			return
		}
		if err == nil || int64(faults) > l.faults.Load() { // an incomplete audit may have skipped faulty ledgers
			l.faults.Store(int64(faults))
		}
		if faults > 0 {
			l.log.Error("ALARM: the audit of the ledgers found faults; penstock ledger verify lists them", "faults", faults)
			wait = auditAfterFaults
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

// renewKeys encrypts all keys of accounts with the newest master key. It retries while the
// database is down or the master key is wrong.
func (l *ledgerService) renewKeys(ctx context.Context) {
	for {
		accounts, err := l.accounts.Accounts(ctx)
		err = errors.Join(err, l.vault.Renew(ctx, gatewayKey))
		for _, a := range accounts {
			err = errors.Join(err, l.vault.Renew(ctx, a.ID))
		}
		l.wrongKey.Store(errors.Is(err, vault.ErrMasterKey))
		if err == nil {
			l.log.Info("all keys of accounts are encrypted with the newest master key")
			return
		}
		l.log.Error("cannot encrypt the keys of accounts with the newest master key", "error", err)
		if !relay.Sleep(ctx, time.Minute) {
			return
		}
	}
}

// check returns an error if keys of accounts cannot be decrypted, or if ledgers do not match their
// signatures.
func (l *ledgerService) check(ctx context.Context) error {
	if l.wrongKey.Load() {
		return admin.Reason("accounts' keys are wrapped by another master key: set ledger.master_key or ledger.master_key_file to the new key followed by the key that this database was used with; if the file ledger-key was lost, restore it from a backup")
	}
	return l.Check(ctx)
}
