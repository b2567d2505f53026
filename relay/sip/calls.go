package sip

import (
	"context"
	"time"

	"github.com/penstock/penstock/decoders/cdr"
	"github.com/penstock/penstock/relay"
	"github.com/penstock/penstock/relay/db"
)

// Calls stores the records of calls, permanently. A record whose key the account has is
// left unchanged. It is safe for concurrent use.
type Calls struct{ db *db.DB }

// New returns the store of calls in a database.
func NewCalls(database *db.DB) *Calls { return &Calls{db: database} }

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
func (c *Calls) Put(ctx context.Context, records []Record) error {
	b := db.BatchOf("account, "+columns, records, func(r *Record) []any { return append([]any{r.Account}, fields(&r.Call)...) })
	return c.db.Run(ctx, "calls", `
INSERT INTO sip_call (account, `+columns+`) SELECT account, `+columns+` FROM batch WHERE true ORDER BY account, key, n
ON CONFLICT (account, key) DO NOTHING`, b)
}

// Read returns a page of calls.
func (c *Calls) Read(ctx context.Context, acct relay.AccountID, from, to time.Time, behind Cursor, limit int) ([]cdr.Call, error) {
	start := from
	if behind.Key != "" {
		start = behind.Start
	}
	return db.List(ctx, c.db, "calls of account "+acct.String(), `
SELECT `+columns+` FROM sip_call
WHERE account = $1 AND started < $2 AND (started, key) > ($3, $4)
ORDER BY started, key LIMIT $5`, fields, acct, to.UnixMilli(), start.UnixMilli(), behind.Key, limit)
}
