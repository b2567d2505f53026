// Package audits keeps the audit log of the admin API in SQL; see relay/audit. Entries
// are kept for good.
package audits

import (
	"context"
	"math"

	"github.com/penstock/penstock/relay/audit"
	"github.com/penstock/penstock/relay/sqlstore"
)

// Store is an audit.Store.
type Store struct{ db *sqlstore.DB }

// New returns the store of audit entries.
func New(db *sqlstore.DB) *Store { return &Store{db: db} }

// fields are the columns of an entry.
func fields(e *audit.Entry) []any {
	return []any{&e.ID, sqlstore.Time(&e.At), &e.Actor, &e.Operation, &e.Account, &e.Outcome, &e.Target, sqlstore.JSON(e)}
}

// Begin saves an entry.
func (s *Store) Begin(ctx context.Context, e audit.Entry) error {
	_, err := s.db.Exec(ctx, "audit entry", `
INSERT INTO audit_entry (id, at, actor, operation, account, outcome, target, doc) VALUES ($1, $2, $3, $4, $5, $6, $7, $8)
ON CONFLICT (id) DO NOTHING`, fields(&e)...)
	return err
}

// Finish completes an entry.
func (s *Store) Finish(ctx context.Context, e audit.Entry) error {
	return sqlstore.MustChange(ctx, s.db, "audit entry "+e.ID, `
UPDATE audit_entry SET account = $1, outcome = $2, target = $3, doc = $4 WHERE id = $5`,
		e.Account, e.Outcome, e.Target, sqlstore.JSON(e), e.ID)
}

// afterAll is after every id.
const afterAll = "~"

const selectEntries = `
SELECT id, at, actor, operation, account, outcome, target, doc FROM audit_entry
WHERE id < $1 AND at >= $2 AND at <= $3
  AND (actor = $4 OR $5 = '') AND (operation = $6 OR $7 = '') AND (account = $8 OR CAST($9 AS BIGINT) = 0)
  AND (outcome = $10 OR $11 = '') AND (target = $12 OR $13 = '')
ORDER BY id DESC LIMIT $14`

// List returns entries, newest first.
func (s *Store) List(ctx context.Context, f audit.Filter) (list []audit.Entry, next string, err error) {
	before, until := f.Cursor, int64(math.MaxInt64)
	if before == "" {
		before = afterAll
	}
	if !f.To.IsZero() {
		until = sqlstore.Millis(f.To)
	}
	list, err = sqlstore.List(ctx, s.db, "audit log", selectEntries, sqlstore.Into(fields),
		before, f.From, until, f.Actor, f.Actor, f.Operation, f.Operation, f.Account, f.Account,
		f.Outcome, f.Outcome, f.Target, f.Target, f.Limit+1)
	if err == nil && len(list) > f.Limit {
		list = list[:f.Limit]
		next = list[f.Limit-1].ID
	}
	return list, next, err
}
