package ledger

import (
	"context"

	"github.com/penstock/penstock/relay"
	"github.com/penstock/penstock/relay/db"
	"github.com/penstock/penstock/relay/ledger/merkle"
)

// Log is the state of a ledger's log.
type Log struct {
	Entries    int64  // number of entries
	Signed     int64  // number of entries that the head covers
	Head       string // signed checkpoint; empty if there is none
	SealedHead string // the sealed Head in base64; empty if there is none
}

// PlacedLog is the log of a ledger of an account.
type PlacedLog struct {
	Place
	Hash        string // the ledger's hash
	Declaration Ledger // without Hash; the zero Ledger if the account does not declare the ledger
	Log         Log
}

// Declared reports whether the account declares the ledger.
func (l PlacedLog) Declared() bool { return l.Declaration.ID != "" }

// Row is a stored entry. Its MAC covers the other fields except Orphan. Because Previous is one of
// them, the MAC also covers the token's previous entry.
type Row struct {
	Sequence int64
	Token    string // id
	Job      string // empty for the token's generation
	Metadata string // the metadata that the entry appends to the token; empty for other entries
	Position int64  // index among the entries of its token
	Claims   int64  // number of the token's claims, including this entry
	Bytes    []byte // nil if the entry is missing
	MAC      []byte
	Previous []byte // MAC of the token's previous entry; nil for the first
	Orphan   bool   // the token is not stored
}

// Chain is the stored summary of a token's entries.
type Chain struct {
	Claimed int64 // number of claims according to the token
	Entries int64 // number of entries
	Last    Row   // the zero Row if there are none
}

// addEntry appends an entry to the chain of a token and to the log of its ledger. It locks the
// log.
func addEntry(ctx context.Context, tx *db.Tx, acct relay.AccountID, t Token, a Authenticator, c Chain, r Row) error {
	const count = `
		INSERT INTO ledger_log (account, ledger, hash, entries, sealed, head)
		VALUES ($1, $2, '', 1, 0, '')
		ON CONFLICT (account, ledger) DO UPDATE
		SET entries = ledger_log.entries + 1
		RETURNING entries`
	const insert = `
		INSERT INTO ledger_entry (account, ledger, sequence, token, job, metadata, position, claims, entry, mac)
		VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10)`
	label := "ledger " + t.Ledger + ": entry"
	entries, err := db.Value[int64](ctx, tx, label, count, acct, t.Ledger)
	if err != nil {
		return err
	}
	r.Token, r.Sequence = t.ID, entries-1
	r.Position, r.Previous = c.Entries, c.Last.MAC
	r.MAC = a.mac(r)
	return tx.Run(ctx, label, insert,
		acct, t.Ledger, r.Sequence, r.Token, r.Job, r.Metadata, r.Position, r.Claims, append([]byte{}, r.Bytes...), r.MAC)
}

// Log returns the state of a ledger's log.
func (s *Store) Log(ctx context.Context, acct relay.AccountID, ledgerID string) (Log, error) {
	const query = `
		SELECT entries, sealed, head, sealed_head
		FROM ledger_log
		WHERE account = $1
		  AND ledger = $2`
	return db.OrZero(db.One(ctx, s.db, "ledger "+ledgerID+": log", query, logFields, acct, ledgerID))
}

func logFields(l *Log) []any { return []any{&l.Entries, &l.Signed, &l.Head, &l.SealedHead} }

// Logs returns the states of the logs of all accounts, by account and ledger.
func (s *Store) Logs(ctx context.Context) ([]PlacedLog, error) {
	const query = `
		SELECT log.account, log.ledger, log.hash, COALESCE(ledger.doc, '{}'),
		       log.entries, log.sealed, log.head, log.sealed_head
		FROM ledger_log log
		LEFT JOIN ledger ON ledger.account = log.account AND ledger.id = log.ledger
		ORDER BY log.account, log.ledger`
	return db.List(ctx, s.db, "ledgers: logs", query, func(l *PlacedLog) []any {
		return append([]any{&l.Account, &l.Ledger, &l.Hash, db.JSON(&l.Declaration)}, logFields(&l.Log)...)
	})
}

// Rows loads the entries from the sequence start up to, not including, end, in order. It omits
// missing entries.
func (s *Store) Rows(ctx context.Context, acct relay.AccountID, ledgerID string, start, end int64) ([]Row, error) {
	const query = `
		SELECT e.sequence, e.token, e.job, e.metadata, e.position, e.claims, e.entry, e.mac,
		       (SELECT p.mac
		        FROM ledger_entry p
		        WHERE p.account = e.account AND p.token = e.token AND p.sequence < e.sequence
		        ORDER BY p.sequence DESC
		        LIMIT 1),
		       t.id IS NULL
		FROM ledger_entry e
		LEFT JOIN ledger_token t ON t.account = e.account AND t.id = e.token
		WHERE e.account = $1
		  AND e.ledger = $2
		  AND e.sequence >= $3
		  AND e.sequence < $4
		ORDER BY e.sequence`
	fields := func(r *Row) []any { return append(rowFields(r), &r.Orphan) }
	return db.List(ctx, s.db, "ledger "+ledgerID+": entries", query, fields, acct, ledgerID, start, end)
}

// rowFields returns pointers to the columns of an entry and to the MAC of the token's previous
// entry.
func rowFields(r *Row) []any {
	return []any{&r.Sequence, &r.Token, &r.Job, &r.Metadata, &r.Position, &r.Claims, &r.Bytes, &r.MAC, &r.Previous}
}

// Entries loads entries by their sequences; nil for a missing entry.
func (s *Store) Entries(ctx context.Context, acct relay.AccountID, ledgerID string, sequences []int64) ([][]byte, error) {
	const query = `
		SELECT batch.n, ledger_entry.entry
		FROM batch
		JOIN ledger_entry ON ledger_entry.account = batch.account
		  AND ledger_entry.ledger = batch.ledger
		  AND ledger_entry.sequence = batch.place`
	return s.readNumbered(ctx, "ledger "+ledgerID+": entries", query, acct, ledgerID, sequences)
}

// Hashes loads hashes of the tree by their indexes; zero for a missing hash.
func (s *Store) Hashes(ctx context.Context, acct relay.AccountID, ledgerID string, indexes []int64) ([]merkle.Hash, error) {
	const query = `
		SELECT batch.n, ledger_tree.hash
		FROM batch
		JOIN ledger_tree ON ledger_tree.account = batch.account
		  AND ledger_tree.ledger = batch.ledger
		  AND ledger_tree.idx = batch.place`
	values, err := s.readNumbered(ctx, "ledger "+ledgerID+": tree", query, acct, ledgerID, indexes)
	hashes := make([]merkle.Hash, len(values))
	for i, b := range values {
		copy(hashes[i][:], b)
	}
	return hashes, err
}

// readNumbered reads rows of a ledger in the order of numbers; nil for a missing row.
func (s *Store) readNumbered(ctx context.Context, label, query string, acct relay.AccountID, ledgerID string, numbers []int64) ([][]byte, error) {
	if len(numbers) == 0 {
		return nil, nil
	}
	rows := db.BatchOf("account, ledger, place", numbers, func(n *int64) []any { return []any{acct, ledgerID, n} })
	return db.Numbered(ctx, s.db, label, query, len(numbers), db.SingleColumn[[]byte], rows)
}

// EntriesOf lists the sequences of a token's entries, in order.
func (s *Store) EntriesOf(ctx context.Context, acct relay.AccountID, tokenID string) ([]int64, error) {
	const query = "SELECT sequence FROM ledger_entry WHERE account = $1 AND token = $2 ORDER BY sequence"
	return db.Values[int64](ctx, s.db, "token "+tokenID+": entries", query, acct, tokenID)
}

// Extend adds the hashes of the entries from the sequence size on, and a head that covers them, in
// one transaction. It changes nothing and returns false if the signed part of the log does not have
// size entries.
func (s *Store) Extend(ctx context.Context, acct relay.AccountID, ledgerID string, size int64, log Log, hashes []merkle.Hash) (bool, error) {
	const create = `
		INSERT INTO ledger_log (account, ledger, hash, entries, sealed, head)
		VALUES ($1, $2, '', 0, 0, '')
		ON CONFLICT (account, ledger) DO NOTHING`
	const update = `
		UPDATE ledger_log
		SET sealed = $3,
		    head = $4,
		    sealed_head = $5
		WHERE account = $1
		  AND ledger = $2
		  AND sealed = $6`
	// The hashes are one parameter, 32 bytes each.
	const insertTree = `
		INSERT INTO ledger_tree (account, ledger, idx, hash)
		SELECT $1, $2, idx, substr(CAST($3 AS {bytea}), CAST(n * 32 - 31 AS INTEGER), 32)
		FROM batch
		WHERE true
		ON CONFLICT (account, ledger, idx) DO NOTHING`
	label := "ledger " + ledgerID + ": tree"
	return db.Transact(ctx, s.db, label, func(ctx context.Context, tx *db.Tx) (bool, error) {
		if size == 0 { // a ledger without entries has no row yet
			if err := tx.Run(ctx, label, create, acct, ledgerID); err != nil {
				return false, err
			}
		}
		n, err := tx.Exec(ctx, label, update, acct, ledgerID, log.Signed, log.Head, log.SealedHead, size)
		if err != nil || n == 0 {
			return false, err
		}
		rows, index := db.NewBatch("idx"), merkle.StoredAt(size)
		value := make([]byte, 0, len(hashes)*len(merkle.Hash{}))
		for i, h := range hashes {
			rows.Add(index + int64(i))
			value = append(value, h[:]...)
		}
		return true, tx.Run(ctx, label, insertTree, acct, ledgerID, value, rows)
	})
}
