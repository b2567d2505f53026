package audit

import (
	"context"

	"github.com/penstock/penstock/relay/db"
)

// Store stores entries, permanently.
type Store struct{ db *db.DB }

// New returns the store of audit entries.
func NewStore(database *db.DB) *Store { return &Store{db: database} }

// fields are the columns of an entry.
func fields(e *Entry) []any {
	return []any{&e.ID, db.Time(&e.At), &e.Actor, &e.Operation, &e.Account, &e.Outcome, &e.Target, db.JSON(e)}
}

// Begin saves an entry.
func (s *Store) Begin(ctx context.Context, e Entry) error {
	return s.db.Run(ctx, "audit entry", `
INSERT INTO audit_entry (id, at, actor, operation, account, outcome, target, doc) VALUES ($1, $2, $3, $4, $5, $6, $7, $8)
ON CONFLICT (id) DO NOTHING`, fields(&e)...)
}

// Finish completes an entry.
func (s *Store) Finish(ctx context.Context, e Entry) error {
	return db.MustChange(ctx, s.db, "audit entry "+e.ID, `
UPDATE audit_entry SET account = $1, outcome = $2, target = $3, doc = $4 WHERE id = $5`,
		e.Account, e.Outcome, e.Target, db.JSON(e), e.ID)
}

// List returns entries, newest first.
func (s *Store) List(ctx context.Context, f Filter) (list []Entry, next string, err error) {
	var w db.Where
	w.AndSet("id < ?", f.Cursor)
	w.AndSet("at >= ?", f.From)
	w.AndSet("at <= ?", f.To)
	w.AndSet("actor = ?", f.Actor)
	w.AndSet("operation = ?", f.Operation)
	w.AndSet("account = ?", f.Account)
	w.AndSet("outcome = ?", f.Outcome)
	w.AndSet("target = ?", f.Target)
	list, err = db.Page(ctx, s.db, "audit log", `
SELECT id, at, actor, operation, account, outcome, target, doc FROM audit_entry`, &w, "id DESC", f.Limit+1, fields)
	if err == nil && len(list) > f.Limit {
		list = list[:f.Limit]
		next = list[f.Limit-1].ID
	}
	return list, next, err
}
