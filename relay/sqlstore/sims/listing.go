package sims

import (
	"context"
	"database/sql"
	"fmt"
	"strings"
	"unicode/utf8"

	"github.com/penstock/penstock/relay/account"
	"github.com/penstock/penstock/relay/sim"
	"github.com/penstock/penstock/relay/sqlstore"
)

// listing is one list: records of a table that a condition selects, in the order
// of any of the columns. columns[0] is the id.
type listing struct {
	account account.ID
	name    string // in sim_block
	table   string
	columns []string
	scope   string // the condition beside the account; $2 is scopeID
	scopeID string
}

// simsOf is the list of a scope.
func simsOf(acct account.ID, in sim.Scope) listing {
	l := listing{account: acct, table: "sim", columns: sim.Columns()}
	switch {
	case in.Pool != "":
		l.name, l.scope, l.scopeID = "pool/"+in.Pool, " AND pool = $2 AND pool <> ''", in.Pool
	case in.Subscriber != "":
		l.name, l.scope, l.scopeID = "subscriber/"+in.Subscriber, " AND subscriber = $2 AND subscriber <> ''", in.Subscriber
	}
	return l
}

// subscribersOf is the list of an account's subscribers.
func subscribersOf(acct account.ID) listing {
	return listing{account: acct, name: "subscribers", table: "sim_subscriber", columns: sim.SubscriberColumns()}
}

// key is a record's place in the order of a column; the zero key is before all.
type key struct{ value, id string }

// top is after every text.
const top = "\U0010ffff"

// after is the key behind all of a list.
func after() key { return key{value: top} }

func (k key) compare(o key) int {
	if c := strings.Compare(k.value, o.value); c != 0 {
		return c
	}
	return strings.Compare(k.id, o.id)
}

// separator stands between value and id where a key is one text. No value holds
// it, and all that values hold comes after it, so the texts are in the order of the
// keys.
const separator = "\x01"

func (k key) text() string {
	if k == (key{}) {
		return ""
	}
	return k.value + separator + k.id
}

func keyOf(text string) key {
	value, id, _ := strings.Cut(text, separator)
	return key{value, id}
}

// span is the records of a list from one key to before another, in the order of a
// column.
type span struct {
	column   int
	from, to key
}

// whole is all of a list.
func whole(column int) span { return span{column: column, to: after()} }

// filter is a filter with the index of its column and how many records it finds.
type filter struct {
	sim.Filter
	column, found int
}

// spanOf is the records that a filter finds, or leaves out.
func spanOf(f filter) span {
	s := span{column: f.column, from: key{value: f.Value}, to: key{value: f.Value + separator}}
	if f.Match == sim.Begins {
		s.to = key{value: f.Value + top}
	}
	return s
}

// query is a statement under construction, with its parameters.
type query struct {
	listing
	where strings.Builder
	args  []any
}

// over selects the records of a span.
func (l listing) over(s span) *query {
	q := &query{listing: l, args: []any{int64(l.account)}}
	q.where.WriteString("account = $1" + l.scope)
	if l.scope != "" {
		q.args = append(q.args, l.scopeID)
	}
	if s.from != (key{}) {
		q.bound(s.column, ">=", s.from)
	}
	if s.to != after() {
		q.bound(s.column, "<", s.to)
	}
	return q
}

// arg adds a parameter and returns its name.
func (q *query) arg(v any) string {
	q.args = append(q.args, v)
	return fmt.Sprintf("$%d", len(q.args))
}

// bound compares the key of a column. The first column's values are the ids, and no
// id is before "".
func (q *query) bound(column int, operator string, k key) {
	if column == 0 || k.id == "" {
		fmt.Fprintf(&q.where, " AND %s %s %s", q.columns[column], operator, q.arg(k.value))
		return
	}
	fmt.Fprintf(&q.where, " AND (%s, %s) %s (%s, %s)", q.columns[column], q.columns[0], operator, q.arg(k.value), q.arg(k.id))
}

// pass adds filters that are tried on each record: what finds the records is the
// span, by an index. PostgreSQL takes it that every second record passes a COALESCE;
// of an equation it expects so few that it would sort all instead of walking.
func (q *query) pass(filters []filter) *query {
	for _, f := range filters {
		name := q.columns[f.column]
		switch f.Match {
		case sim.Begins:
			fmt.Fprintf(&q.where, " AND COALESCE(substr(%s, 1, %s) = %s, false)", name, q.arg(int64(utf8.RuneCountInString(f.Value))), q.arg(f.Value))
		case sim.Differs:
			fmt.Fprintf(&q.where, " AND %s <> %s", name, q.arg(f.Value))
		default:
			fmt.Fprintf(&q.where, " AND %s = %s", name, q.arg(f.Value))
		}
	}
	return q
}

// by is an ORDER BY of a column.
func (l listing) by(column int, descending bool) string {
	direction := ""
	if descending {
		direction = " DESC"
	}
	by := l.columns[0] + direction
	if column > 0 {
		by = l.columns[column] + direction + ", " + by
	}
	return by
}

// count counts what is selected.
func (q *query) count(ctx context.Context, c sqlstore.Conn) (int, error) {
	return sqlstore.Value[int](ctx, c, q.table, "SELECT count(*) FROM "+q.table+" WHERE "+q.where.String(), q.args...)
}

// countTo counts what is selected, up to a limit.
func (q *query) countTo(ctx context.Context, c sqlstore.Conn, limit int) (int, error) {
	text := "SELECT count(*) FROM (SELECT 1 FROM " + q.table + " WHERE " + q.where.String() + " LIMIT " + q.arg(int64(limit)) + ") found"
	return sqlstore.Value[int](ctx, c, q.table, text, q.args...)
}

// ids returns the ids of n records in an order, after so many.
func (q *query) ids(ctx context.Context, c sqlstore.Conn, order string, n, skip int) ([]string, error) {
	text := "SELECT " + q.columns[0] + " FROM " + q.table + " WHERE " + q.where.String()
	text += " ORDER BY " + order + " LIMIT " + q.arg(int64(n)) + " OFFSET " + q.arg(int64(skip))
	return sqlstore.Values[string](ctx, c, q.table, text, q.args...)
}

// sorted is ids, but sorts all that is selected.
func (q *query) sorted(ctx context.Context, c sqlstore.Conn, order string, n, skip int) ([]string, error) {
	text := "WITH found AS MATERIALIZED (SELECT " + strings.Join(q.columns, ", ") + " FROM " + q.table + " WHERE " + q.where.String() + ")"
	text += " SELECT " + q.columns[0] + " FROM found ORDER BY " + order + " LIMIT " + q.arg(int64(n)) + " OFFSET " + q.arg(int64(skip))
	return sqlstore.Values[string](ctx, c, q.table, text, q.args...)
}

// keys returns the first keys of a column, at most n, in no order.
func (q *query) keys(ctx context.Context, c sqlstore.Conn, column, n int) ([]key, error) {
	text := "SELECT " + q.columns[column] + ", " + q.columns[0] + " FROM " + q.table + " WHERE " + q.where.String() + " LIMIT " + q.arg(int64(n))
	return sqlstore.List(ctx, c, q.table, text, scanKey, q.args...)
}

func scanKey(row *sql.Rows, k *key) error { return row.Scan(&k.value, &k.id) }
