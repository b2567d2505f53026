package audit

import (
	"context"

	"github.com/penstock/penstock/relay/db"
)

// Store stores entries, permanently. It is safe for concurrent use.
type Store struct{ db *db.DB }

// NewStore returns the store of audit entries.
func NewStore(database *db.DB) *Store { return &Store{db: database} }

// fields returns pointers for the columns id, at, actor, operation, account, outcome,
// target and doc.
func fields(e *Entry) []any {
	return []any{&e.ID, db.Time(&e.At), &e.Actor, &e.Operation, &e.Account, &e.Outcome, &e.Target, db.JSON(e)}
}

// Begin saves an entry that is started.
func (s *Store) Begin(ctx context.Context, e Entry) error {
	const statement = `
		INSERT INTO audit_entry (id, at, actor, operation, account, outcome, target, doc)
		VALUES ($1, $2, $3, $4, $5, $6, $7, $8)
		ON CONFLICT (id) DO NOTHING`
	return s.db.Run(ctx, "audit entry", statement, fields(&e)...)
}

// Finish completes an entry; relay.KindNotFound if it was not begun.
func (s *Store) Finish(ctx context.Context, e Entry) error {
	const statement = `
		UPDATE audit_entry
		SET account = $1, outcome = $2, target = $3, doc = $4
		WHERE id = $5`
	return db.MustChange(ctx, s.db, "audit entry "+e.ID, statement, e.Account, e.Outcome, e.Target, db.JSON(e), e.ID)
}

// List returns entries, newest first, and the cursor of the next page, empty on the last
// page.
func (s *Store) List(ctx context.Context, f Filter) (entries []Entry, cursor string, err error) {
	const query = `
		SELECT id, at, actor, operation, account, outcome, target, doc
		FROM audit_entry`
	var w db.Where
	w.AndSet("id < ?", f.Cursor)
	w.AndSet("at >= ?", f.From)
	w.AndSet("at <= ?", f.To)
	w.AndSet("actor = ?", f.Actor)
	w.AndSet("operation = ?", f.Operation)
	w.AndSet("account = ?", f.Account)
	w.AndSet("outcome = ?", f.Outcome)
	w.AndSet("target = ?", f.Target)
	entries, err = db.Page(ctx, s.db, "audit log", query, &w, "id DESC", f.Limit+1, fields)
	if err == nil && len(entries) > f.Limit {
		entries = entries[:f.Limit]
		cursor = entries[f.Limit-1].ID
	}
	return entries, cursor, err
}
