package account

import (
	"context"
	"fmt"
	"math"
	"time"

	"github.com/penstock/penstock/relay"
	"github.com/penstock/penstock/relay/db"
)

// Store stores accounts, tokens and logins. It is safe for concurrent use.
type Store struct {
	db      *db.DB
	poll    time.Duration // interval at which Changes looks for changes by other gateways
	changed chan struct{} // has an element after a change of a token through this store
}

// NewStore returns the store of accounts.
func NewStore(database *db.DB) *Store {
	return &Store{db: database, poll: time.Second, changed: make(chan struct{}, 1)}
}

// Account loads an account. It returns relay.KindNotFound if there is none. If the record
// cannot be decrypted, it returns the id and the name with relay.ErrUndecryptable.
func (s *Store) Account(ctx context.Context, id relay.AccountID) (Account, error) {
	const query = `
		SELECT id, doc, name
		FROM account
		WHERE id = $1`
	return s.account(ctx, "account "+id.String(), query, id)
}

// AccountByName loads an account by its name, as Account does.
func (s *Store) AccountByName(ctx context.Context, name string) (Account, error) {
	const query = `
		SELECT id, doc, name
		FROM account
		WHERE name = $1`
	return s.account(ctx, "account "+name, query, name)
}

func (s *Store) account(ctx context.Context, label, query string, key any) (Account, error) {
	a, err := db.One(ctx, s.db, label, query, accountFields, key)
	if err == nil && a.Undecryptable {
		err = fmt.Errorf("%s: %w", label, relay.ErrUndecryptable)
	}
	return a, err
}

// Accounts lists all accounts by id, including accounts that cannot be decrypted.
func (s *Store) Accounts(ctx context.Context) ([]Account, error) {
	const query = `
		SELECT id, doc, name
		FROM account
		ORDER BY id`
	return db.List(ctx, s.db, "accounts", query, accountFields)
}

// accountFields returns pointers for the columns id, doc and name.
func accountFields(a *Account) []any {
	return []any{&a.ID, db.SealedOr(&a.Undecryptable, db.JSON(a), "account", &a.ID), &a.Name}
}

// lockedFields returns pointers for the columns id and doc. A document that cannot be
// decrypted is an error, because the caller is about to replace it.
func lockedFields(a *Account) []any { return db.SealedDoc(a, "account") }

// PutAccount saves one account, see PutAccounts.
func (s *Store) PutAccount(ctx context.Context, a Account) (relay.AccountID, error) {
	ids, err := s.PutAccounts(ctx, []Account{a}, nil)
	if err != nil {
		return 0, err
	}
	return ids[0], nil
}

// PutAccounts saves up to a few hundred accounts and returns their ids in the same order. For the
// id 0, it uses the id of the stored account with the name, or the next free id. PutAccounts
// returns relay.KindConflict if an id belongs to another name or a name to another id.
//
// loaded contains each account as the caller loaded it: PutAccounts keeps a callback URL that
// SetCallback has saved since then. With nil for loaded, PutAccounts saves the accounts
// unchanged.
func (s *Store) PutAccounts(ctx context.Context, accounts, loaded []Account) ([]relay.AccountID, error) {
	return db.Transact(ctx, s.db, "accounts", func(ctx context.Context, tx *db.Tx) (ids []relay.AccountID, err error) {
		ids = make([]relay.AccountID, len(accounts))
		for i, a := range accounts {
			var old *Account
			if loaded != nil {
				old = &loaded[i]
			}
			if ids[i], _, err = putAccount(ctx, tx, a, old); err != nil {
				return nil, err
			}
		}
		return ids, nil
	})
}

// lockIDs locks the assignment of ids, so that one account is saved at a time. A
// transaction takes this lock before it locks an account.
const lockIDs = `
	SELECT last
	FROM account_id
	{for update}`

const setLastID = `
	UPDATE account_id
	SET last = $1`

// AddAccount saves a new account and returns the assigned id. In the same transaction, it calls
// open, which saves the initial records of the account; an error of open rolls back the account.
// AddAccount returns relay.KindConflict if the name is taken, even if another gateway adds an
// account with the name at the same time.
func (s *Store) AddAccount(ctx context.Context, a Account, open func(ctx context.Context, tx *db.Tx, id relay.AccountID) error) (relay.AccountID, error) {
	return db.Transact(ctx, s.db, "account "+a.Name, func(ctx context.Context, tx *db.Tx) (relay.AccountID, error) {
		id, existed, err := putAccount(ctx, tx, a, nil)
		if err != nil {
			return 0, err
		}
		if existed {
			return 0, relay.Errorf(relay.KindConflict, "There is an account named %s already.", a.Name)
		}
		return id, open(ctx, tx, id)
	})
}

// putAccount saves an account; existed reports whether its name was taken. Its lock of
// account_id excludes other calls, its lock of the row excludes SetCallback.
func putAccount(ctx context.Context, tx *db.Tx, a Account, loaded *Account) (id relay.AccountID, existed bool, err error) {
	const (
		lockAccount = `
			SELECT id, doc
			FROM account
			WHERE name = $1
			{for update}`
		save = `
			INSERT INTO account (id, name, doc)
			VALUES ($1, $2, $3)
			ON CONFLICT (id) DO UPDATE
			SET name = excluded.name, doc = excluded.doc
			WHERE account.name = excluded.name`
	)
	label := "account " + a.Name
	conflict := relay.Errorf(relay.KindConflict, "account %s: id %d belongs to another account", a.Name, a.ID)
	lastID, err := db.Value[int64](ctx, tx, label, lockIDs)
	if err != nil {
		return 0, false, err
	}
	stored, err := db.One(ctx, tx, label, lockAccount, lockedFields, a.Name)
	existed = err == nil
	switch {
	case err != nil && !db.IsNotFound(err):
		return 0, false, err
	case existed && a.ID == 0:
		a.ID = stored.ID
	case existed && a.ID != stored.ID:
		return 0, true, conflict
	case a.ID == 0:
		if a.ID, err = nextID(ctx, tx, lastID); err != nil {
			return 0, false, err
		}
	}
	if existed && loaded != nil && stored.CallbackURL != loaded.CallbackURL {
		a.CallbackURL = stored.CallbackURL
	}
	err = db.ChangeOr(ctx, tx, conflict, label, save, a.ID, a.Name, db.Sealed(db.JSON(a), "account", a.ID))
	return a.ID, existed, err
}

// nextID assigns the next id after lastID that no account has declared for itself. An id
// is assigned once, even if its account is deleted.
func nextID(ctx context.Context, tx *db.Tx, lastID int64) (relay.AccountID, error) {
	const firstFree = `
		SELECT MIN(candidate.id)
		FROM (
		  SELECT CAST($1 AS BIGINT) AS id
		  UNION ALL
		  SELECT id + 1 FROM account WHERE id >= $1 AND id < $2
		) candidate
		WHERE NOT EXISTS (SELECT 1 FROM account WHERE account.id = candidate.id)`
	id, err := db.Value[relay.AccountID](ctx, tx, "account id", firstFree, lastID+1, math.MaxInt64)
	if err != nil {
		return 0, err
	}
	return id, tx.Run(ctx, "account id", setLastID, id)
}

// SetCallback saves the callback URL of an account.
func (s *Store) SetCallback(ctx context.Context, id relay.AccountID, url string) error {
	const (
		lock = `
			SELECT id, doc
			FROM account
			WHERE id = $1
			{for update}`
		save = `
			UPDATE account
			SET doc = $1
			WHERE id = $2`
	)
	label := "account " + id.String()
	return s.db.Write(ctx, label, func(ctx context.Context, tx *db.Tx) error {
		a, err := db.One(ctx, tx, label, lock, lockedFields, id)
		if err != nil || a.CallbackURL == url {
			return err
		}
		a.CallbackURL = url
		return tx.RunAll(ctx, label, db.Do(save, db.Sealed(db.JSON(a), "account", id), id), db.Bump("accounts"))
	})
}

// logins stores logins by username. They belong to account 0: the username selects the
// account.
const logins db.Documents[Login] = "login"

// Login loads the login of a username; relay.KindNotFound if there is none.
func (s *Store) Login(ctx context.Context, username string) (Login, error) {
	return logins.Get(ctx, s.db, 0, username)
}

// PutLogin saves a login.
func (s *Store) PutLogin(ctx context.Context, l Login) error {
	return logins.Put(ctx, s.db, 0, l.Username, l)
}

// DeleteLogin deletes the login of a username, if there is one.
func (s *Store) DeleteLogin(ctx context.Context, username string) error {
	return db.IgnoreNotFound(logins.Delete(ctx, s.db, 0, username))
}
