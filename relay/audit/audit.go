// Package audit provides the log of changes over the admin API: the actor, the change, and
// the values before and after the change. Secrets are masked before an entry is saved.
//
// An entry is saved before the change and completed after the change. If the entry cannot
// be saved, the change is not made, so that no change is missing in the log.
package audit

import (
	"context"
	"encoding/json"
	"time"

	"github.com/penstock/penstock/relay"
	"github.com/penstock/penstock/relay/db"
)

// Outcome is the result of a change.
type Outcome string

// The outcomes. A Started change has no recorded end: it is in progress, or the gateway
// stopped before its end.
const (
	Started Outcome = "started"
	Done    Outcome = "done"
	Refused Outcome = "refused" // status 4xx: nothing was changed
	Failed  Outcome = "failed"  // status 5xx: records may have been changed
)

// Outcomes lists every outcome.
func Outcomes() []Outcome { return []Outcome{Started, Done, Refused, Failed} }

// OutcomeOf returns the outcome of a request by the status of its response.
func OutcomeOf(status int) Outcome {
	switch {
	case status < 400:
		return Done
	case status < 500:
		return Refused
	}
	return Failed
}

// AdminToken is the actor of a request with the admin token; no user has this name.
const AdminToken = "admin token"

// Entry is a change.
type Entry struct {
	ID string    `json:"-"` // sorts by time
	At time.Time `json:"-"`
	// Actor is a user's name, or AdminToken.
	Actor string `json:"-"`
	// Operation is the operationId of the contract.
	Operation string `json:"-"`
	// Account is the account of the changed record; 0 for none or several.
	Account relay.AccountID `json:"-"`
	Outcome Outcome         `json:"-"`
	// Target is the id or the name of the changed record; empty for a selection.
	Target string `json:"-"`

	Role    string `json:"role"`
	Address string `json:"address"` // of the client
	Status  int    `json:"status"`  // of the response; 0 while the outcome is Started
	// Request is the body of the request; Before and After are the values that it changed.
	// All three are masked JSON and may be empty.
	Request json.RawMessage `json:"request,omitempty"`
	Before  json.RawMessage `json:"before,omitempty"`
	After   json.RawMessage `json:"after,omitempty"`
}

// Filter selects entries; its zero value selects all.
type Filter struct {
	Actor, Operation, Target string
	Account                  relay.AccountID
	Outcome                  Outcome
	From, To                 time.Time
	Limit                    int
	// Cursor is the id of the last entry of the previous page.
	Cursor string
}

// Store stores entries, permanently. It is safe for concurrent use.
type Store struct{ db *db.DB }

// NewStore returns the store of audit entries.
func NewStore(database *db.DB) *Store { return &Store{db: database} }

// fields returns pointers for the columns id, at, actor, operation, account, outcome,
// target and doc.
func fields(e *Entry) []any {
	return []any{&e.ID, db.Time(&e.At), &e.Actor, &e.Operation, &e.Account, &e.Outcome, &e.Target, db.JSON(e)}
}

// Begin saves a started entry.
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
