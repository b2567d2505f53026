package sim

import (
	"context"
	"fmt"
	"slices"

	"github.com/penstock/penstock/relay"
	"github.com/penstock/penstock/relay/db"
)

// list is the records of an account in a table, or those of a scope. Each column that it
// is ordered and filtered by has an index that contains the others; the first is the id.
type list struct {
	table   string
	account relay.AccountID
	scope   Scope
	columns []string
}

// lastText sorts after every text.
const lastText = "\U0010ffff"

// where returns the conditions of the list and of filters.
func (l list) where(filters []Filter) *db.Where {
	var w db.Where
	w.And("account = ?", l.account)
	w.AndSet("pool = ? AND pool <> ''", l.scope.Pool) // the second part is the condition of the index
	w.AndSet("subscriber = ? AND subscriber <> ''", l.scope.Subscriber)
	for _, f := range filters {
		column := l.columns[slices.Index(l.columns, f.Column)]
		switch f.Match {
		case Begins:
			w.And(column+" >= ?", f.Value)
			w.And(column+" < ?", f.Value+lastText)
		case Differs:
			w.And(column+" <> ?", f.Value)
		default:
			w.And(column+" = ?", f.Value)
		}
	}
	return &w
}

// readPage returns a page of a list and how many records the list has.
func readPage[T any](ctx context.Context, database *db.DB, l list, q Query, fields string, read func(*T) []any) ([]T, int, error) {
	where := l.where(q.Filters)
	total, err := l.total(ctx, database, q.Filters, where)
	if err != nil || q.Offset() >= total {
		return nil, total, err
	}
	statement := l.pageOf(q, fields, where)
	records, err := db.List(ctx, database, l.table+" list", statement, read, where.Args()...)
	return records, total, err
}

// pageOf returns the statement that reads a page. It finds the ids first: OFFSET skips
// entries of an index then, not records.
func (l list) pageOf(q Query, fields string, where *db.Where) string {
	const statement = `
		SELECT %[1]s
		FROM (
		  SELECT %[2]s AS page_id
		  FROM %[3]s
		  %[4]s
		  ORDER BY %[5]s
		  LIMIT %[6]s
		  OFFSET %[7]s
		) AS page
		CROSS JOIN %[3]s
		WHERE account = $1
		  AND %[2]s = page_id
		ORDER BY %[5]s`
	direction := ""
	if q.Descending {
		direction = " DESC"
	}
	id := l.columns[0]
	order := id + direction
	if i := q.Order(l.columns); i > 0 {
		order = l.columns[i] + direction + ", " + order
	}
	return fmt.Sprintf(statement, fields, id, l.table, where, order, where.Arg(q.PerPage), where.Arg(q.Offset()))
}

// total returns how many records a list has: of all of an account by their counter, of
// others by a count of the entries of an index.
func (l list) total(ctx context.Context, database *db.DB, filters []Filter, where *db.Where) (int, error) {
	label := l.table + " count"
	if len(filters) == 0 && l.scope == (Scope{}) {
		const statement = `
			SELECT n
			FROM sim_count
			WHERE account = $1
			  AND list = $2`
		return db.OrZero(db.Value[int](ctx, database, label, statement, l.account, l.table))
	}
	return db.Value[int](ctx, database, label, "SELECT count(*) FROM "+l.table+where.String(), where.Args()...)
}

// addToCount changes the number of an account's records in a table. It locks the counter
// until the end of the transaction.
func addToCount(ctx context.Context, tx *db.Tx, acct relay.AccountID, table string, added int) error {
	const statement = `
		INSERT INTO sim_count (account, list, n)
		VALUES ($1, $2, $3)
		ON CONFLICT (account, list) DO UPDATE
		SET n = sim_count.n + excluded.n`
	if added == 0 {
		return nil
	}
	return tx.Run(ctx, table+" count", statement, acct, table, added)
}
