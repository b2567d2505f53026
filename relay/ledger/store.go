package ledger

import (
	"context"
	"database/sql"
	"fmt"
	"time"

	"github.com/penstock/penstock/relay"
	"github.com/penstock/penstock/relay/db"
)

// Store stores ledgers, tokens, entries and secrets. It implements vault.Store. It is safe for
// concurrent use.
//
// A transaction that adds an entry locks the token and then the ledger's log. The unique key
// (token, job) prevents a job that runs twice from adding two entries. The hashes of the tree are
// added later, see docs/adr/0010-ledger-tree-behind-entries.md.
type Store struct{ db *db.DB }

// NewStore returns the store of ledgers in a database.
func NewStore(database *db.DB) *Store { return &Store{db: database} }

const ledgerTable db.Documents[Ledger] = "ledger"

// Put saves the declaration of a ledger. The first hash of a ledger is never replaced.
func (s *Store) Put(ctx context.Context, acct relay.AccountID, l Ledger) error {
	const statement = `
		INSERT INTO ledger_log (account, ledger, hash, entries, sealed, head)
		VALUES ($1, $2, $3, 0, 0, '')
		ON CONFLICT (account, ledger) DO UPDATE
		SET hash = excluded.hash
		WHERE ledger_log.hash = ''`
	return s.db.Write(ctx, "ledger "+l.ID, func(ctx context.Context, tx *db.Tx) error {
		if err := tx.Run(ctx, "ledger "+l.ID, statement, acct, l.ID, l.Hash); err != nil {
			return err
		}
		return ledgerTable.Put(ctx, tx, acct, l.ID, l)
	})
}

// Delete deletes the declaration of a ledger. It returns relay.KindConflict if the ledger has
// entries, and relay.KindNotFound if there is no such ledger.
func (s *Store) Delete(ctx context.Context, acct relay.AccountID, id string) error {
	const query = "SELECT entries FROM ledger_log WHERE account = $1 AND ledger = $2 {for update}"
	label := "ledger " + id
	return s.db.Write(ctx, label, func(ctx context.Context, tx *db.Tx) error {
		entries, err := db.Value[int64](ctx, tx, label, query, acct, id)
		if err != nil {
			return err
		}
		if entries > 0 {
			return relay.Errorf(relay.KindConflict, "%s: it has a history", label)
		}
		return ledgerTable.Delete(ctx, tx, acct, id)
	})
}

// Ledgers lists an account's ledgers by id.
func (s *Store) Ledgers(ctx context.Context, acct relay.AccountID) ([]Ledger, error) {
	const query = `
		SELECT ledger.doc, ledger_log.hash
		FROM ledger
		JOIN ledger_log ON ledger_log.account = ledger.account AND ledger_log.ledger = ledger.id
		WHERE ledger.account = $1
		ORDER BY ledger.id`
	fields := func(l *Ledger) []any { return []any{db.JSON(l), &l.Hash} }
	return db.List(ctx, s.db, "ledgers of account "+acct.String(), query, fields, acct)
}

// The kinds of sealed secrets.
const (
	kindKeyset  = "keyset"
	kindSecret  = "secret"  // the name is that of the secret
	kindPrivate = "private" // the name is the id of the job
)

const keepSealed = `
	INSERT INTO ledger_sealed (account, kind, name, sealed, expires)
	VALUES ($1, $2, $3, $4, 0)
	ON CONFLICT (account, kind, name) DO NOTHING`

// loadPermanent loads a sealed value that does not expire. It returns an error for a row that expires
// or is empty, because such a row was changed outside the gateway. If the row counted as missing, a new
// secret would replace it, and the data sealed with the old secret would be lost.
func loadPermanent(ctx context.Context, c db.Conn, acct relay.AccountID, kind, name, label string) ([]byte, error) {
	const query = `
		SELECT sealed, expires
		FROM ledger_sealed
		WHERE account = $1
		  AND kind = $2
		  AND name = $3`
	type row struct {
		sealed  []byte
		expires int64
	}
	r, err := db.One(ctx, c, label, query, func(r *row) []any { return []any{&r.sealed, &r.expires} }, acct, kind, name)
	rowName := fmt.Sprintf("%s: the row of ledger_sealed with account %d, kind '%s' and name '%s'", label, acct, kind, name)
	switch {
	case err != nil:
		return nil, err
	case r.expires != 0:
		return nil, fmt.Errorf("%s was changed: expires is %d, set it to 0", rowName, r.expires)
	case len(r.sealed) == 0:
		return nil, fmt.Errorf("%s was changed: sealed is empty, restore it from a backup", rowName)
	}
	return r.sealed, nil
}

// Keyset loads an account's wrapped keyset.
func (s *Store) Keyset(ctx context.Context, acct relay.AccountID) ([]byte, error) {
	return Keyset(ctx, s.db, acct)
}

// Keyset loads an account's wrapped keyset like Store.Keyset, over a connection or in a transaction.
func Keyset(ctx context.Context, c db.Conn, acct relay.AccountID) ([]byte, error) {
	return loadPermanent(ctx, c, acct, kindKeyset, "", "keyset of account "+acct.String())
}

// KeysetsOf returns the wrapped keysets of a SQLite database that was opened without db.DB.
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

// PutKeyset replaces the stored keyset of an account (nil for none) by a fresh one. It returns
// relay.KindConflict if the database has another keyset than stored.
func (s *Store) PutKeyset(ctx context.Context, acct relay.AccountID, stored, fresh []byte) error {
	const replace = `
		UPDATE ledger_sealed
		SET sealed = $4
		WHERE account = $1
		  AND kind = $2
		  AND name = $3
		  AND sealed = $5`
	label := "keyset of account " + acct.String()
	conflict := relay.Errorf(relay.KindConflict, "%s: changed since it was read", label)
	if len(stored) == 0 {
		return db.ChangeOr(ctx, s.db, conflict, label, keepSealed, acct, kindKeyset, "", fresh)
	}
	return db.ChangeOr(ctx, s.db, conflict, label, replace, acct, kindKeyset, "", fresh, stored)
}

// Secret loads a sealed secret of an account; relay.KindNotFound if there is no such secret.
func (s *Store) Secret(ctx context.Context, acct relay.AccountID, name string) ([]byte, error) {
	return loadPermanent(ctx, s.db, acct, kindSecret, name, "secret "+name)
}

// KeepSecret saves a sealed secret unless the account has a secret of that name, and returns the
// stored secret.
func (s *Store) KeepSecret(ctx context.Context, acct relay.AccountID, name string, sealed []byte) ([]byte, error) {
	if err := s.db.Run(ctx, "secret "+name, keepSealed, acct, kindSecret, name, sealed); err != nil {
		return nil, err
	}
	return s.Secret(ctx, acct, name)
}

// SetPrivate saves the sealed private token of a job. The token expires after retention.
func (s *Store) SetPrivate(ctx context.Context, acct relay.AccountID, jobID string, sealed []byte, retention time.Duration) error {
	const statement = `
		INSERT INTO ledger_sealed (account, kind, name, sealed, expires)
		VALUES ($1, $2, $3, $4, $5)
		ON CONFLICT (account, kind, name) DO UPDATE
		SET sealed = excluded.sealed,
		    expires = excluded.expires`
	return s.db.Run(ctx, "private token of job "+jobID, statement, acct, kindPrivate, jobID, sealed, s.db.Now().Add(retention))
}

// Private loads a job's sealed private token; relay.KindNotFound after it has expired.
func (s *Store) Private(ctx context.Context, acct relay.AccountID, jobID string) ([]byte, error) {
	const query = `
		SELECT sealed
		FROM ledger_sealed
		WHERE account = $1
		  AND kind = $2
		  AND name = $3
		  AND expires > $4`
	return db.Value[[]byte](ctx, s.db, "private token of job "+jobID, query, acct, kindPrivate, jobID, s.db.Now())
}

// Sweep deletes private tokens that have expired.
func (s *Store) Sweep(ctx context.Context, now time.Time) error {
	const statement = `
		DELETE FROM ledger_sealed
		WHERE kind = 'private'
		  AND (account, name) IN (
			SELECT account, name
			FROM ledger_sealed
			WHERE kind = 'private'
			  AND expires > 0
			  AND expires <= $1
			ORDER BY expires
			LIMIT $2 {skip locked})`
	return s.db.Sweep(ctx, "private tokens", db.MaxSweep, statement, now)
}
