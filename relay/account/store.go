package account

import (
	"context"
	"fmt"
	"math"
	"sync"
	"time"

	"github.com/penstock/penstock/relay"
	"github.com/penstock/penstock/relay/db"
)

// Store keeps accounts, tokens, logins and the inventory; it is an Store
// and a sim.Callbacks.
type Store struct {
	// Poll is how often Changes looks for changes that other gateways made; 0
	// means each second. It is set before the store is used.
	Poll    time.Duration
	db      *db.DB
	mu      sync.Mutex
	changed chan struct{} // closed by the next change of a token here
}

// New returns the store of accounts.
func NewStore(db *db.DB) *Store {
	return &Store{db: db, changed: make(chan struct{})}
}

// Account loads an account.
func (s *Store) Account(ctx context.Context, id relay.AccountID) (Account, error) {
	return s.account(ctx, "account "+id.String(), "id = $1", id)
}

// AccountByName loads an account by its name.
func (s *Store) AccountByName(ctx context.Context, name string) (Account, error) {
	return s.account(ctx, "account "+name, "name = $1", name)
}

func readAccount(a *Account) []any { return db.SealedDoc(a, "account") }

const selectAccounts = "SELECT id, doc, name FROM account"

// listedAccount returns where the columns of selectAccounts are read to.
func listedAccount(a *Account) []any {
	return []any{&a.ID, db.SealedOr(&a.Unopened, db.JSON(a), "account", &a.ID), &a.Name}
}

// account loads an account; relay.ErrUnopened, with the id and the name, if it does not
// open.
func (s *Store) account(ctx context.Context, noun, condition string, value any) (Account, error) {
	a, err := db.One(ctx, s.db, noun, selectAccounts+" WHERE "+condition, listedAccount, value)
	if err == nil && a.Unopened {
		err = fmt.Errorf("%s: %w", noun, relay.ErrUnopened)
	}
	return a, err
}

// Accounts lists every account by id.
func (s *Store) Accounts(ctx context.Context) ([]Account, error) {
	return db.List(ctx, s.db, "accounts", selectAccounts+" ORDER BY id", listedAccount)
}

// PutAccount saves an account as it is given, see PutAccounts.
func (s *Store) PutAccount(ctx context.Context, a Account) (relay.AccountID, error) {
	ids, err := s.PutAccounts(ctx, []Account{a}, nil)
	if err != nil {
		return 0, err
	}
	return ids[0], nil
}

// PutAccounts saves accounts, at most some hundreds, and returns their ids, in their
// order; id 0 asks for the one that the name has, or the next free one. It returns
// relay.KindConflict if an id belongs to another name or a name to another id.
//
// Account i replaces read[i], as it was loaded before: a callback URL that SetCallback
// has saved since then is kept. With nil for read, accounts are saved as they are given.
func (s *Store) PutAccounts(ctx context.Context, all, read []Account) (ids []relay.AccountID, err error) {
	return db.Transact(ctx, s.db, "accounts", func(ctx context.Context, tx *db.Tx) (ids []relay.AccountID, err error) {
		ids = make([]relay.AccountID, len(all))
		for i, a := range all {
			var loaded *Account
			if read != nil {
				loaded = &read[i]
			}
			if ids[i], err = putAccount(ctx, tx, a, loaded); err != nil {
				return nil, err
			}
		}
		return ids, nil
	})
}

// putAccount holds the lock of account_id, so no other PutAccounts saves an account, and
// that of the row, so SetCallback does not.
func putAccount(ctx context.Context, tx *db.Tx, a Account, loaded *Account) (relay.AccountID, error) {
	noun := "account " + a.Name
	last, err := db.Value[int64](ctx, tx, noun, "SELECT last FROM account_id {for update}")
	if err != nil {
		return 0, err
	}
	stored, err := db.One(ctx, tx, noun, "SELECT id, doc FROM account WHERE name = $1 {for update}", readAccount, a.Name)
	exists := err == nil
	switch {
	case err != nil && !db.IsNotFound(err):
		return 0, err
	case exists && a.ID == 0:
		a.ID = stored.ID
	case exists && a.ID != stored.ID:
		return 0, conflict(a)
	case a.ID == 0:
		if a.ID, err = nextID(ctx, tx, last); err != nil {
			return 0, err
		}
	}
	if exists && loaded != nil && stored.CallbackURL != loaded.CallbackURL {
		a.CallbackURL = stored.CallbackURL
	}
	return a.ID, db.ChangeOr(ctx, tx, conflict(a), noun, db.Upsert("account", "id", "name, doc")+" WHERE account.name = excluded.name",
		a.ID, a.Name, db.Sealed(db.JSON(a), "account", a.ID))
}

// DeleteAccount deletes an account and its logins. Its id is not assigned again.
func (s *Store) DeleteAccount(ctx context.Context, id relay.AccountID) error {
	noun := "account " + id.String()
	return s.db.Write(ctx, noun, func(ctx context.Context, tx *db.Tx) error {
		all, err := logins.All(ctx, tx, 0)
		if err != nil {
			return err
		}
		for _, l := range all {
			if l.Account == id {
				if err := logins.Delete(ctx, tx, 0, l.Username); err != nil {
					return err
				}
			}
		}
		return tx.RunAll(ctx, noun, db.Do("UPDATE account_id SET last = $1 WHERE last < $1", id), db.Do("DELETE FROM account WHERE id = $1", id), db.Bump("accounts"))
	})
}

func conflict(a Account) error {
	return relay.Errorf(relay.KindConflict, "account %s: id %d belongs to another account", a.Name, a.ID)
}

// nextID takes the next id after the last one given that no account declared for
// itself. An id is given once, even if its account is deleted.
func nextID(ctx context.Context, tx *db.Tx, last int64) (relay.AccountID, error) {
	id, err := db.Value[relay.AccountID](ctx, tx, "account id", `
SELECT MIN(free.id)
FROM (SELECT CAST($1 AS BIGINT) AS id UNION ALL SELECT id + 1 FROM account WHERE id >= $1 AND id < $2) free
WHERE NOT EXISTS (SELECT 1 FROM account WHERE account.id = free.id)`, last+1, math.MaxInt64)
	if err != nil {
		return 0, err
	}
	return id, tx.Run(ctx, "account id", "UPDATE account_id SET last = $1", id)
}

// SetCallback saves the callback URL of an account.
func (s *Store) SetCallback(ctx context.Context, id relay.AccountID, url string) error {
	noun := "account " + id.String()
	return s.db.Write(ctx, noun, func(ctx context.Context, tx *db.Tx) error {
		a, err := db.One(ctx, tx, noun, "SELECT id, doc FROM account WHERE id = $1 {for update}", readAccount, id)
		if err != nil || a.CallbackURL == url {
			return err
		}
		a.CallbackURL = url
		return tx.RunAll(ctx, noun, db.Do("UPDATE account SET doc = $1 WHERE id = $2", db.Sealed(db.JSON(a), "account", id), id), db.Bump("accounts"))
	})
}

const logins db.Documents[Login] = "login"

// Login loads the login of a username.
func (s *Store) Login(ctx context.Context, username string) (Login, error) {
	return logins.Get(ctx, s.db, 0, username)
}

// PutLogin saves a login.
func (s *Store) PutLogin(ctx context.Context, l Login) error {
	return logins.Put(ctx, s.db, 0, l.Username, l)
}

// DeleteLogin deletes the login of a username, if it has one.
func (s *Store) DeleteLogin(ctx context.Context, username string) error {
	return db.IgnoreNotFound(logins.Delete(ctx, s.db, 0, username))
}
