package ledger

import (
	"context"

	"github.com/penstock/penstock/relay"
	"github.com/penstock/penstock/relay/db"
	"github.com/penstock/penstock/relay/ledger/merkle"
)

// addEntry numbers an entry, which follows a token's chain, and adds it to the log of its
// ledger, which it locks.
func addEntry(ctx context.Context, tx *db.Tx, acct relay.AccountID, t Token, a Authenticator, c Chain, r Row) error {
	noun := "ledger " + t.Ledger + ": entry"
	entries, err := db.Value[int64](ctx, tx, noun, `
INSERT INTO ledger_log (account, ledger, hash, entries, sealed, head) VALUES ($1, $2, '', 1, 0, '')
ON CONFLICT (account, ledger) DO UPDATE SET entries = ledger_log.entries + 1
RETURNING entries`, acct, t.Ledger)
	if err != nil {
		return err
	}
	r.Token, r.Sequence = t.ID, entries-1
	r = a.Append(c, r)
	return tx.Run(ctx, noun, `
INSERT INTO ledger_entry (account, ledger, sequence, token, job, metadata, position, claims, entry, mac)
VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10)`,
		acct, t.Ledger, r.Sequence, r.Token, r.Job, r.Metadata, r.Position, r.Claims, append([]byte{}, r.Bytes...), r.MAC)
}

// Log loads the state of a ledger's log.
func (s *Store) Log(ctx context.Context, acct relay.AccountID, ledgerID string) (Log, error) {
	return db.OrZero(db.One(ctx, s.db, "ledger "+ledgerID+": log", `
SELECT entries, sealed, head, sealed_head FROM ledger_log WHERE account = $1 AND ledger = $2`, logFields, acct, ledgerID))
}

func logFields(l *Log) []any { return []any{&l.Entries, &l.Signed, &l.Head, &l.SealedHead} }

// Logs lists the logs of all accounts, by account and ledger.
func (s *Store) Logs(ctx context.Context) ([]LogOf, error) {
	return db.List(ctx, s.db, "ledgers: logs", `
SELECT log.account, log.ledger, log.hash, ledger.id IS NOT NULL, log.entries, log.sealed, log.head, log.sealed_head
FROM ledger_log log LEFT JOIN ledger ON ledger.account = log.account AND ledger.id = log.ledger
ORDER BY log.account, log.ledger`, func(l *LogOf) []any {
		return append([]any{&l.Account, &l.Ledger, &l.Hash, &l.Declared}, logFields(&l.Log)...)
	})
}

// Rows loads the entries from one sequence up to, not including, another, as they
// are stored.
func (s *Store) Rows(ctx context.Context, acct relay.AccountID, ledgerID string, from, to int64) ([]Row, error) {
	return db.List(ctx, s.db, "ledger "+ledgerID+": entries", `
SELECT e.sequence, e.token, e.job, e.metadata, e.position, e.claims, e.entry, e.mac, (
  SELECT p.mac FROM ledger_entry p
  WHERE p.account = e.account AND p.token = e.token AND p.sequence < e.sequence
  ORDER BY p.sequence DESC LIMIT 1), t.id IS NULL
FROM ledger_entry e LEFT JOIN ledger_token t ON t.account = e.account AND t.id = e.token
WHERE e.account = $1 AND e.ledger = $2 AND e.sequence >= $3 AND e.sequence < $4
ORDER BY e.sequence`, func(r *Row) []any {
		return append(rowFields(r), &r.Orphan)
	}, acct, ledgerID, from, to)
}

// rowFields are the columns of an entry and the MAC of the entry of its token before it.
func rowFields(r *Row) []any {
	return []any{&r.Sequence, &r.Token, &r.Job, &r.Metadata, &r.Position, &r.Claims, &r.Bytes, &r.MAC, &r.Previous}
}

// Entries loads entries by their sequence.
func (s *Store) Entries(ctx context.Context, acct relay.AccountID, ledgerID string, sequences []int64) ([][]byte, error) {
	return s.numbered(ctx, "ledger "+ledgerID+": entries", `
SELECT batch.n, ledger_entry.entry
FROM batch JOIN ledger_entry
  ON ledger_entry.account = batch.account AND ledger_entry.ledger = batch.ledger AND ledger_entry.sequence = batch.place`, acct, ledgerID, sequences)
}

// Hashes loads stored hashes by their index.
func (s *Store) Hashes(ctx context.Context, acct relay.AccountID, ledgerID string, indexes []int64) ([]merkle.Hash, error) {
	found, err := s.numbered(ctx, "ledger "+ledgerID+": tree", `
SELECT batch.n, ledger_tree.hash
FROM batch JOIN ledger_tree
  ON ledger_tree.account = batch.account AND ledger_tree.ledger = batch.ledger AND ledger_tree.idx = batch.place`, acct, ledgerID, indexes)
	out := make([]merkle.Hash, len(found))
	for i, b := range found {
		copy(out[i][:], b)
	}
	return out, err
}

// numbered reads rows of a ledger in the order of the given numbers; nil for one
// that is not there.
func (s *Store) numbered(ctx context.Context, noun, query string, acct relay.AccountID, ledgerID string, numbers []int64) ([][]byte, error) {
	if len(numbers) == 0 {
		return nil, nil
	}
	return db.Numbered(ctx, s.db, noun, query, len(numbers), db.Self[[]byte],
		db.BatchOf("account, ledger, place", numbers, func(n *int64) []any { return []any{acct, ledgerID, n} }))
}

// EntriesOf lists the sequences of a token's entries.
func (s *Store) EntriesOf(ctx context.Context, acct relay.AccountID, tokenID string) ([]int64, error) {
	return db.Values[int64](ctx, s.db, "token "+tokenID+": entries", `
SELECT sequence FROM ledger_entry WHERE account = $1 AND token = $2 ORDER BY sequence`, acct, tokenID)
}

// Extend adds the hashes of entries and a head that covers them, unless the log
// had another size by then.
func (s *Store) Extend(ctx context.Context, acct relay.AccountID, ledgerID string, was int64, next Log, hashes []merkle.Hash) (bool, error) {
	noun := "ledger " + ledgerID + ": tree"
	return db.Transact(ctx, s.db, noun, func(ctx context.Context, tx *db.Tx) (bool, error) {
		if was == 0 { // a log without entries has a head too
			if err := tx.Run(ctx, noun, `
INSERT INTO ledger_log (account, ledger, hash, entries, sealed, head) VALUES ($1, $2, '', 0, 0, '')
ON CONFLICT (account, ledger) DO NOTHING`, acct, ledgerID); err != nil {
				return false, err
			}
		}
		n, err := tx.Exec(ctx, noun, `
UPDATE ledger_log SET sealed = $3, head = $4, sealed_head = $5 WHERE account = $1 AND ledger = $2 AND sealed = $6`, acct, ledgerID, next.Signed, next.Head, next.SealedHead, was)
		if err != nil || n == 0 {
			return false, err
		}
		return true, insertTree(ctx, tx, noun, acct, ledgerID, was, hashes)
	})
}

func insertTree(ctx context.Context, tx *db.Tx, noun string, acct relay.AccountID, ledgerID string, was int64, hashes []merkle.Hash) error {
	b, first := db.NewBatch("idx"), merkle.StoredAt(was)
	all := make([]byte, 0, len(hashes)*len(merkle.Hash{}))
	for i, h := range hashes {
		b.Add(first + int64(i))
		all = append(all, h[:]...)
	}
	// The hashes come as one value, 32 bytes each.
	return tx.Run(ctx, noun, `
INSERT INTO ledger_tree (account, ledger, idx, hash)
SELECT $1, $2, idx, substr(CAST($3 AS {bytea}), CAST(n * 32 - 31 AS INTEGER), 32) FROM batch WHERE true
ON CONFLICT (account, ledger, idx) DO NOTHING`, acct, ledgerID, all, b)
}
