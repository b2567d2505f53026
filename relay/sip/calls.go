package sip

import (
	"context"
	"strconv"
	"time"

	"github.com/penstock/penstock/decoders/cdr"
	"github.com/penstock/penstock/relay"
	"github.com/penstock/penstock/relay/db"
)

// Record is a call with its account.
type Record struct {
	Account relay.AccountID
	Call    cdr.Call
}

// Cursor is the position of a call. Read continues after it.
type Cursor struct {
	Start time.Time
	Key   string
}

// Calls stores the records of calls permanently. It is safe for concurrent use.
type Calls struct{ db *db.DB }

// NewCalls returns the store of calls in a database.
func NewCalls(database *db.DB) *Calls { return &Calls{db: database} }

const columns = "key, started, answered, ended, id, caller, callee, duration, billsec, disposition, trunk"

// fields returns pointers to the fields of call in the order of columns.
func fields(call *cdr.Call) []any {
	return []any{
		&call.Key, db.Time(&call.Start), db.Time(&call.Answer), db.Time(&call.End), &call.ID, &call.From, &call.To,
		&call.Duration, &call.Billsec, &call.Disposition, &call.Trunk,
	}
}

// Put saves records, all or none. It ignores a record if the account already has a record with its
// key. It inserts in the order of the keys, so that gateways that save the same calls do not deadlock.
// The error is relay.KindUnavailable if a retry may succeed.
func (c *Calls) Put(ctx context.Context, records []Record) error {
	const statement = `
		INSERT INTO sip_call (account, ` + columns + `)
		SELECT account, ` + columns + `
		FROM batch
		WHERE true
		ORDER BY account, key, n
		ON CONFLICT (account, key) DO NOTHING`
	batch := db.BatchOf("account, "+columns, records, func(r *Record) []any { return append([]any{r.Account}, fields(&r.Call)...) })
	return c.db.Run(ctx, "calls", statement, batch)
}

// Read returns up to limit calls that begin at or after start and before end. It continues after
// cursor, in the order of start and key. The zero cursor is before the first call.
func (c *Calls) Read(ctx context.Context, acct relay.AccountID, start, end time.Time, cursor Cursor, limit int) ([]cdr.Call, error) {
	const query = `
		SELECT ` + columns + `
		FROM sip_call
		WHERE account = $1
		  AND started < $2
		  AND (started, key) > ($3, $4)
		ORDER BY started, key
		LIMIT $5`
	if cursor.Key != "" {
		start = cursor.Start
	}
	return db.List(ctx, c.db, "calls of account "+acct.String(), query, fields, acct, end.UnixMilli(), start.UnixMilli(), cursor.Key, limit)
}

// UKv3a is the name of the only layout of archives.
const UKv3a = "UKv3a"

// Header returns the header line of a file.
func Header() []string {
	return []string{"call_id", "start", "answer", "end", "from", "to", "duration", "billsec", "disposition", "trunk"}
}

// timeLayout is the format of times: to the second, with a fraction only if the switch reported
// one.
const timeLayout = "2006-01-02 15:04:05.999"

// Row returns the cells of a call.
func Row(c cdr.Call) []string {
	return []string{
		cdr.Inert(c.ID), formatTime(c.Start), formatTime(c.Answer), formatTime(c.End), cdr.Inert(c.From), cdr.Inert(c.To),
		strconv.FormatInt(c.Duration, 10), strconv.FormatInt(c.Billsec, 10), cdr.Inert(c.Disposition), cdr.Inert(c.Trunk),
	}
}

func formatTime(t time.Time) string {
	if t.IsZero() {
		return ""
	}
	return t.UTC().Format(timeLayout)
}

// File returns the name of the file for a call: one file for each day, or one for all.
func (o Order) File(c cdr.Call) string {
	if o.Single {
		return o.FirstFile()
	}
	return "cdr-" + c.Start.UTC().Format("20060102") + ".csv"
}

// FirstFile returns the name of the only file of a single archive or of an archive without calls.
func (o Order) FirstFile() string {
	return "cdr-" + o.From.Format("20060102") + "-" + o.To.Add(-time.Second).Format("20060102") + ".csv"
}
