package ledger

import (
	"context"
	"database/sql"
	"fmt"
	"time"

	"github.com/penstock/penstock/relay"
	"github.com/penstock/penstock/relay/db"
)

// Store keeps ledgers, their tokens, entries and secrets in SQL; it is a vault.Store, too.
// It is safe for concurrent use.
//
// An entry is numbered under the lock of its ledger's log, after its token was locked.
// Because of its unique key (token, job), a job that runs twice adds one entry. The hashes
// of the tree follow the entries, see docs/adr.
type Store struct{ db *db.DB }

// NewStore returns the store of ledgers in a database.
func NewStore(database *db.DB) *Store { return &Store{db: database} }

const declarations db.Documents[Ledger] = "ledger"

// Put saves a ledger as it is declared. Its hash counts only if it has none.
func (s *Store) Put(ctx context.Context, acct relay.AccountID, l Ledger) error {
	return s.db.Write(ctx, "ledger "+l.ID, func(ctx context.Context, tx *db.Tx) error {
		if err := tx.Run(ctx, "ledger "+l.ID, `
INSERT INTO ledger_log (account, ledger, hash, entries, sealed, head) VALUES ($1, $2, $3, 0, 0, '')
ON CONFLICT (account, ledger) DO UPDATE SET hash = excluded.hash WHERE ledger_log.hash = ''`, acct, l.ID, l.Hash); err != nil {
			return err
		}
		return declarations.Put(ctx, tx, acct, l.ID, l)
	})
}

// Delete forgets the declaration of a ledger; relay.KindConflict if it has
// entries, which nothing removes, relay.KindNotFound if there is none.
func (s *Store) Delete(ctx context.Context, acct relay.AccountID, id string) error {
	noun := "ledger " + id
	return s.db.Write(ctx, noun, func(ctx context.Context, tx *db.Tx) error {
		entries, err := db.Value[int64](ctx, tx, noun, `
SELECT entries FROM ledger_log WHERE account = $1 AND ledger = $2 {for update}`, acct, id)
		if err != nil {
			return err
		}
		if entries > 0 {
			return relay.Errorf(relay.KindConflict, "%s: it has a history", noun)
		}
		return declarations.Delete(ctx, tx, acct, id)
	})
}

// Ledgers lists an account's ledgers by id.
func (s *Store) Ledgers(ctx context.Context, acct relay.AccountID) ([]Ledger, error) {
	return db.List(ctx, s.db, "ledgers of account "+acct.String(), `
SELECT ledger.doc, ledger_log.hash
FROM ledger JOIN ledger_log ON ledger_log.account = ledger.account AND ledger_log.ledger = ledger.id
WHERE ledger.account = $1
ORDER BY ledger.id`, func(l *Ledger) []any {
		return []any{db.JSON(l), &l.Hash}
	}, acct)
}

// The kinds of sealed secrets.
const (
	kindKeyset  = "keyset"
	kindSecret  = "secret"  // by name
	kindPrivate = "private" // by job
)

const keepSealed = `
INSERT INTO ledger_sealed (account, kind, name, sealed, expires) VALUES ($1, $2, $3, $4, 0)
ON CONFLICT (account, kind, name) DO NOTHING`

// lasting loads what is sealed for good. A row that has an end or is empty was changed
// outside the gateway. Its error names the row: taken for missing, it would be made anew,
// and what the old one has sealed would be lost.
func lasting(ctx context.Context, c db.Conn, acct relay.AccountID, kind, name, noun string) ([]byte, error) {
	type row struct {
		sealed  []byte
		expires int64
	}
	r, err := db.One(ctx, c, noun, `
SELECT sealed, expires FROM ledger_sealed WHERE account = $1 AND kind = $2 AND name = $3`, func(r *row) []any {
		return []any{&r.sealed, &r.expires}
	}, acct, kind, name)
	at := fmt.Sprintf("%s: the row of ledger_sealed with account %d, kind '%s' and name '%s'", noun, acct, kind, name)
	switch {
	case err != nil:
		return nil, err
	case r.expires != 0:
		return nil, fmt.Errorf("%s was changed: expires is %d, set it to 0", at, r.expires)
	case len(r.sealed) == 0:
		return nil, fmt.Errorf("%s was changed: sealed is empty, restore it from a backup", at)
	}
	return r.sealed, nil
}

// Keyset loads an account's wrapped keyset.
func (s *Store) Keyset(ctx context.Context, acct relay.AccountID) ([]byte, error) {
	return Keyset(ctx, s.db, acct)
}

// Keyset loads an account's wrapped keyset, also in a transaction.
func Keyset(ctx context.Context, c db.Conn, acct relay.AccountID) ([]byte, error) {
	return lasting(ctx, c, acct, kindKeyset, "", "keyset of account "+acct.String())
}

// KeysetsOf returns the wrapped keysets of a SQLite database that no gateway has open.
func KeysetsOf(ctx context.Context, db *sql.DB) (keysets [][]byte, err error) {
	rows, err := db.QueryContext(ctx, "SELECT sealed FROM ledger_sealed WHERE kind = '"+kindKeyset+"'")
	if err != nil {
		return nil, err
	}
	defer func() { _ = rows.Close() }()
	for rows.Next() {
		var keyset []byte
		if err := rows.Scan(&keyset); err != nil {
			return nil, err
		}
		keysets = append(keysets, keyset)
	}
	return keysets, rows.Err()
}

// PutKeyset replaces an account's wrapped keyset, nil for none, if no other one is stored.
func (s *Store) PutKeyset(ctx context.Context, acct relay.AccountID, stored, fresh []byte) error {
	noun, query, args := "keyset of account "+acct.String(), keepSealed, []any{acct, kindKeyset, "", fresh}
	if len(stored) > 0 {
		query, args = "UPDATE ledger_sealed SET sealed = $4 WHERE account = $1 AND kind = $2 AND name = $3 AND sealed = $5", append(args, stored)
	}
	return db.ChangeOr(ctx, s.db, relay.Errorf(relay.KindConflict, "%s: changed since it was read", noun), noun, query, args...)
}

// Secret loads something sealed.
func (s *Store) Secret(ctx context.Context, acct relay.AccountID, name string) ([]byte, error) {
	return lasting(ctx, s.db, acct, kindSecret, name, "secret "+name)
}

// KeepSecret saves something sealed unless there is one of the name.
func (s *Store) KeepSecret(ctx context.Context, acct relay.AccountID, name string, sealed []byte) ([]byte, error) {
	if err := s.db.Run(ctx, "secret "+name, keepSealed, acct, kindSecret, name, sealed); err != nil {
		return nil, err
	}
	return s.Secret(ctx, acct, name)
}

// SetPrivate keeps a job's sealed private token for a time.
func (s *Store) SetPrivate(ctx context.Context, acct relay.AccountID, jobID string, sealed []byte, keep time.Duration) error {
	return s.db.Run(ctx, "private token of job "+jobID, db.Upsert("ledger_sealed", "account, kind, name", "sealed, expires"), acct, kindPrivate, jobID, sealed, s.db.Now().Add(keep))
}

// Private loads a job's sealed private token.
func (s *Store) Private(ctx context.Context, acct relay.AccountID, jobID string) ([]byte, error) {
	return db.Value[[]byte](ctx, s.db, "private token of job "+jobID, `
SELECT sealed FROM ledger_sealed
WHERE account = $1 AND kind = $2 AND name = $3 AND expires > $4`, acct, kindPrivate, jobID, s.db.Now())
}

// Sweep removes private tokens that have expired.
func (s *Store) Sweep(ctx context.Context, now time.Time) error {
	return s.db.Sweep(ctx, "private tokens", db.SweepMost, `
DELETE FROM ledger_sealed WHERE kind = 'private' AND (account, name) IN (
  SELECT account, name FROM ledger_sealed
  WHERE kind = 'private' AND expires > 0 AND expires <= $1 ORDER BY expires LIMIT $2 {skip locked})`, now)
}
