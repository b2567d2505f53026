// Package calls keeps the records of SIP calls in the record store; it is a
// sip.Calls.
//
// A record whose key the account has is left as it is. Records are kept for good.
// Reading goes in pages behind the last key.
package calls

import (
	"context"
	"time"

	"github.com/penstock/penstock/decoders/cdr"
	"github.com/penstock/penstock/relay"
	"github.com/penstock/penstock/relay/db"
	"github.com/penstock/penstock/relay/sip"
)

// Store keeps the records of calls. It is safe for concurrent use.
type Store struct{ db *db.DB }

// New returns the store of calls in a database.
func New(database *db.DB) *Store { return &Store{db: database} }

const columns = "key, started, answered, ended, id, caller, callee, duration, billsec, disposition, trunk"

// fields are columns.
func fields(c *cdr.Call) []any {
	return []any{
		&c.Key, db.Time(&c.Start), db.Time(&c.Answer), db.Time(&c.End), &c.ID, &c.From, &c.To,
		&c.Duration, &c.Billsec, &c.Disposition, &c.Trunk,
	}
}

// Put keeps records durably, all or none, in the order of keys, in which gateways that were
// given the same calls do not lock each other out.
func (s *Store) Put(ctx context.Context, records []sip.Record) error {
	b := db.BatchOf("account, "+columns, records, func(r *sip.Record) []any { return append([]any{r.Account}, fields(&r.Call)...) })
	return s.db.Run(ctx, "calls", `
INSERT INTO sip_call (account, `+columns+`) SELECT account, `+columns+` FROM batch WHERE true ORDER BY account, key, n
ON CONFLICT (account, key) DO NOTHING`, b)
}

// Read returns a page of calls.
func (s *Store) Read(ctx context.Context, acct relay.AccountID, from, to time.Time, behind sip.Cursor, limit int) ([]cdr.Call, error) {
	start := from
	if behind.Key != "" {
		start = behind.Start
	}
	return db.List(ctx, s.db, "calls of account "+acct.String(), `
SELECT `+columns+` FROM sip_call
WHERE account = $1 AND started < $2 AND (started, key) > ($3, $4)
ORDER BY started, key LIMIT $5`, fields, acct, to.UnixMilli(), start.UnixMilli(), behind.Key, limit)
}
