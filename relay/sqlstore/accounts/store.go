package accounts

import (
	"context"
	"fmt"
	"sync"
	"time"

	"github.com/penstock/penstock/relay"
	"github.com/penstock/penstock/relay/account"
	"github.com/penstock/penstock/relay/sqlstore"
)

// Store keeps accounts, tokens, logins and the inventory; it is an account.Store
// and a sim.Callbacks.
type Store struct {
	// Poll is how often Changes looks for changes that other gateways made; 0
	// means each second. It is set before the store is used.
	Poll time.Duration
	// Sealer seals the webhook secrets of accounts, the secrets of tokens and the
	// inventory; nil: they are kept as they are. It is set before the store is used.
	Sealer Sealer

	db        *sqlstore.DB
	mu        sync.Mutex
	listeners map[chan struct{}]bool // of Changes
}

// New returns the store of accounts.
func New(db *sqlstore.DB) *Store {
	return &Store{db: db, listeners: make(map[chan struct{}]bool)}
}

// Account loads an account.
func (s *Store) Account(ctx context.Context, id account.ID) (account.Account, error) {
	a, err := sqlstore.One(ctx, s.db, "account "+id.String(), "SELECT doc FROM account WHERE id = $1", sqlstore.ScanDoc[account.Account], int64(id))
	return s.opened(ctx, a, err)
}

// AccountByName loads an account by its name.
func (s *Store) AccountByName(ctx context.Context, name string) (account.Account, error) {
	a, err := sqlstore.One(ctx, s.db, "account "+name, "SELECT doc FROM account WHERE name = $1", sqlstore.ScanDoc[account.Account], name)
	return s.opened(ctx, a, err)
}

// Accounts lists every account by id.
func (s *Store) Accounts(ctx context.Context) ([]account.Account, error) {
	all, err := sqlstore.List(ctx, s.db, "accounts", "SELECT doc FROM account ORDER BY id", sqlstore.ScanDoc[account.Account])
	for i := 0; i < len(all) && err == nil; i++ {
		all[i], err = s.opened(ctx, all[i], nil)
	}
	return all, err
}

// PutAccount saves an account, see PutAccounts.
func (s *Store) PutAccount(ctx context.Context, a account.Account) (account.ID, error) {
	ids, err := s.PutAccounts(ctx, []account.Account{a})
	if err != nil {
		return 0, err
	}
	return ids[0], nil
}

// PutAccounts saves accounts, at most some hundreds, and returns their ids, in their
// order; id 0 asks for the one that the name has, or the next free one. It returns
// relay.KindConflict if an id belongs to another name or a name to another id.
func (s *Store) PutAccounts(ctx context.Context, all []account.Account) (ids []account.ID, err error) {
	sealed := make([]account.Account, len(all))
	for i, a := range all {
		if sealed[i], err = ofAccount(ctx, a, s.seal); err != nil {
			return nil, err
		}
	}
	err = s.db.Write(ctx, "accounts", func(ctx context.Context, tx *sqlstore.Tx) error {
		ids = make([]account.ID, len(sealed)) // it may run again
		for i, a := range sealed {
			var err error
			if ids[i], err = putAccount(ctx, tx, a); err != nil {
				return err
			}
		}
		return nil
	})
	if err != nil {
		return nil, err
	}
	return ids, nil
}

const upsertAccount = `
INSERT INTO account (id, name, doc) VALUES ($1, $2, $3)
ON CONFLICT (id) DO UPDATE SET doc = excluded.doc WHERE account.name = excluded.name`

// putAccount holds the lock of account_id, so nothing else saves an account.
func putAccount(ctx context.Context, tx *sqlstore.Tx, a account.Account) (account.ID, error) {
	noun := "account " + a.Name
	last, err := sqlstore.Value[int64](ctx, tx, noun, "SELECT last FROM account_id {for update}")
	if err != nil {
		return 0, err
	}
	held, err := sqlstore.Value[int64](ctx, tx, noun, "SELECT id FROM account WHERE name = $1", a.Name)
	known := err == nil
	switch {
	case err != nil && !sqlstore.IsNotFound(err):
		return 0, err
	case known && a.ID == 0:
		a.ID = account.ID(held)
	case known && a.ID != account.ID(held):
		return 0, conflict(a)
	case a.ID == 0:
		if a.ID, err = nextID(ctx, tx, last); err != nil {
			return 0, err
		}
	}
	doc, err := sqlstore.Encode(a)
	if err != nil {
		return 0, fmt.Errorf("%s: encode: %w", noun, err)
	}
	n, err := tx.Exec(ctx, noun, upsertAccount, int64(a.ID), a.Name, doc)
	if err == nil && n == 0 {
		err = conflict(a)
	}
	return a.ID, err
}

func conflict(a account.Account) error {
	return relay.Errorf(relay.KindConflict, "account %s: id %d belongs to another account", a.Name, a.ID)
}

const selectFreeID = `
SELECT MIN(free.id)
FROM (SELECT CAST($1 AS BIGINT) AS id UNION ALL SELECT id + 1 FROM account WHERE id >= $1 AND id < $2) free
WHERE NOT EXISTS (SELECT 1 FROM account WHERE account.id = free.id)`

// nextID takes the next id after the last one given that no account declared for
// itself. An id is given once, even if its account is deleted.
func nextID(ctx context.Context, tx *sqlstore.Tx, last int64) (account.ID, error) {
	const most = 1<<63 - 1
	id, err := sqlstore.Value[int64](ctx, tx, "account id", selectFreeID, last+1, int64(most))
	if err != nil {
		return 0, err
	}
	_, err = tx.Exec(ctx, "account id", "UPDATE account_id SET last = $1", id)
	return account.ID(id), err
}

// SetCallback saves the callback URL of an account.
func (s *Store) SetCallback(ctx context.Context, id account.ID, url string) error {
	noun := "account " + id.String()
	return s.db.Write(ctx, noun, func(ctx context.Context, tx *sqlstore.Tx) error {
		a, err := sqlstore.One(ctx, tx, noun, "SELECT doc FROM account WHERE id = $1 {for update}", sqlstore.ScanDoc[account.Account], int64(id))
		if err != nil || a.CallbackURL == url {
			return err
		}
		a.CallbackURL = url
		doc, err := sqlstore.Encode(a)
		if err != nil {
			return fmt.Errorf("%s: encode: %w", noun, err)
		}
		if _, err := tx.Exec(ctx, noun, "UPDATE account SET doc = $1 WHERE id = $2", doc, int64(id)); err != nil {
			return err
		}
		return tx.Bump(ctx, "accounts")
	})
}
