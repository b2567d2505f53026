package sim

import (
	"context"
	"fmt"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"

	"github.com/penstock/penstock/relay"
	"github.com/penstock/penstock/relay/db"
)

// list selects the records of an account, or of a scope, in a table. Lists are ordered and
// filtered by columns. Each column has an index that contains the other columns; the first column
// is the id.
type list struct {
	table   string
	account relay.AccountID
	scope   Scope
	columns []string
}

// lastText sorts after every text.
const lastText = "\U0010ffff"

func (l list) conditions(filters []Filter) *db.Where {
	var w db.Where
	w.And("account = ?", l.account)
	w.AndSet("pool = ? AND pool <> ''", l.scope.Pool) // so that the partial index for pool <> '' is used
	w.AndSet("subscriber = ? AND subscriber <> ''", l.scope.Subscriber)
	for _, f := range filters {
		column := l.columns[slices.Index(l.columns, f.Column)]
		switch f.Match {
		case StartsWith:
			w.And(column+" >= ?", f.Value)
			w.And(column+" < ?", f.Value+lastText)
		case NotEquals:
			w.And(column+" <> ?", f.Value)
		default:
			w.And(column+" = ?", f.Value)
		}
	}
	return &w
}

// readPage returns a page of a list and the total number of its records.
func readPage[T any](ctx context.Context, database *db.DB, l list, q Query, fields string, read func(*T) []any) ([]T, int, error) {
	conditions := l.conditions(q.Filters)
	total, err := l.total(ctx, database, q.Filters, conditions)
	if err != nil || q.Offset() >= total {
		return nil, total, err
	}
	statement := l.pageOf(q, fields, conditions)
	records, err := db.List(ctx, database, l.table+" list", statement, read, conditions.Args()...)
	return records, total, err
}

// pageOf returns the statement that reads a page. It finds the ids first, so that OFFSET skips
// entries of an index instead of records.
func (l list) pageOf(q Query, fields string, conditions *db.Where) string {
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
	return fmt.Sprintf(statement, fields, id, l.table, conditions, order, conditions.Arg(q.PerPage), conditions.Arg(q.Offset()))
}

// total returns the number of records of a list. It reads a counter for the unfiltered list of an
// account, and counts index entries for other lists.
func (l list) total(ctx context.Context, database *db.DB, filters []Filter, conditions *db.Where) (int, error) {
	label := l.table + " count"
	if len(filters) == 0 && l.scope == (Scope{}) {
		const statement = `
			SELECT n
			FROM sim_count
			WHERE account = $1
			  AND list = $2`
		return db.OrZero(db.Value[int](ctx, database, label, statement, l.account, l.table))
	}
	return db.Value[int](ctx, database, label, "SELECT count(*) FROM "+l.table+conditions.String(), conditions.Args()...)
}

// addToCount adds a number, which may be negative, to the counter of an account's records in a
// table. It locks the counter until the end of the transaction.
func addToCount(ctx context.Context, tx *db.Tx, acct relay.AccountID, table string, delta int) error {
	const statement = `
		INSERT INTO sim_count (account, list, n)
		VALUES ($1, $2, $3)
		ON CONFLICT (account, list) DO UPDATE
		SET n = sim_count.n + excluded.n`
	if delta == 0 {
		return nil
	}
	return tx.Run(ctx, table+" count", statement, acct, table, delta)
}

// Columns returns the columns by which lists of SIMs are filtered and ordered. The first
// column is the default order.
func Columns() []string { return []string{"iccid", "imsi", "msisdn"} }

// SubscriberColumns returns the columns by which lists of subscribers are ordered, and filtered
// except by id. Ids are in the order of registration. Comparisons of names ignore case.
func SubscriberColumns() []string { return []string{"id", "forename", "surname"} }

// Match is the comparison of a filter.
type Match int

// The matches.
const (
	Equals Match = iota
	NotEquals
	StartsWith
)

// Filter selects the records of a list whose column matches a value.
type Filter struct {
	Column string
	Match  Match
	Value  string
}

// Holds reports whether the value of a column matches.
func (f Filter) Holds(value string) bool {
	switch f.Match {
	case NotEquals:
		return value != f.Value
	case StartsWith:
		return strings.HasPrefix(value, f.Value)
	}
	return value == f.Value
}

// ParseFilter parses a filter of a request. The operator is =, !=, starts_with or like; empty
// means =. With like, a value that ends in % is a prefix, and other values must be equal. For an
// invalid operator or value, field is operator or value, and problem is the reason.
func ParseFilter(column, operator, value string) (f Filter, field, problem string) {
	if len(value) > maxText || !utf8.ValidString(value) || strings.ContainsFunc(value, unicode.IsControl) {
		return f, "value", "must be a text of at most 255 characters."
	}
	f = Filter{Column: column, Value: value}
	switch operator {
	case "=", "":
	case "!=":
		f.Match = NotEquals
	case "starts_with":
		f.Match = StartsWith
	case "like":
		prefix, isPrefix := strings.CutSuffix(value, "%")
		if strings.ContainsAny(prefix, "%_") {
			return f, "value", "must be a text, or its beginning followed by %."
		}
		if f.Value = prefix; isPrefix {
			f.Match = StartsWith
		}
	default:
		return f, "operator", "must be =, !=, like or starts_with."
	}
	return f, "", ""
}

// Query selects and orders a page of a list. Filters have different columns.
type Query struct {
	relay.Page
	OrderBy    string // a column; if empty, see Order
	Descending bool   // reverses the order, including the order of equal values
	Filters    []Filter
}

// Order returns the index of the column by which a list is ordered: the requested column, or else
// the column of the first filter by a prefix, whose index has the results in order, or else the
// first column.
func (q Query) Order(columns []string) int {
	key := q.OrderBy
	for _, f := range q.Filters {
		if key == "" && f.Match == StartsWith {
			key = f.Column
		}
	}
	return max(0, slices.Index(columns, key))
}

// Scope selects the SIMs of a pool, of a subscriber, or, if both fields are empty, of the
// account. At most one field is set.
type Scope struct{ Pool, Subscriber string }
