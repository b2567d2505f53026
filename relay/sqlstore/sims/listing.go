package sims

import (
	"context"
	"errors"
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
	scope   string // the condition beside the account, on scopeID
	scopeID string
}

// simsOf is the list of a scope.
func simsOf(acct account.ID, in sim.Scope) listing {
	l := listing{account: acct, table: "sim", columns: sim.Columns()}
	switch {
	case in.Pool != "":
		l.name, l.scope, l.scopeID = "pool/"+in.Pool, "pool = ? AND pool <> ''", in.Pool
	case in.Subscriber != "":
		l.name, l.scope, l.scopeID = "subscriber/"+in.Subscriber, "subscriber = ? AND subscriber <> ''", in.Subscriber
	}
	return l
}

// subscribersOf is the list of an account's subscribers.
func subscribersOf(acct account.ID) listing {
	return listing{account: acct, name: "subscribers", table: "sim_subscriber", columns: sim.SubscriberColumns()}
}

// key is a record's sort key in the order of a column; the zero key sorts first.
type key struct{ value, id string }

// maxText sorts after every text.
const maxText = "\U0010ffff"

// endKey sorts after every key of a list.
func endKey() key { return key{value: maxText} }

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

// keyRange is a half-open range of keys in the order of a column.
type keyRange struct {
	column   int
	from, to key
}

// fullRange is the range of a whole list.
func fullRange(column int) keyRange { return keyRange{column: column, to: endKey()} }

// filter is a filter with the index of its column and how many records it finds.
type filter struct {
	sim.Filter
	column, found int
}

// rangeOf is the range of the records that a filter matches, or excludes.
func rangeOf(f filter) keyRange {
	r := keyRange{column: f.column, from: key{value: f.Value}, to: key{value: f.Value + separator}}
	if f.Match == sim.Begins {
		r.to = key{value: f.Value + maxText}
	}
	return r
}

// query is a statement under construction, with its parameters.
type query struct {
	listing
	sqlstore.Where
}

// inRange selects the records in a range.
func (l listing) inRange(r keyRange) *query {
	q := &query{listing: l}
	q.And("account = ?", l.account)
	if l.scope != "" {
		q.And(l.scope, l.scopeID)
	}
	if r.from != (key{}) {
		q.bound(r.column, ">=", r.from)
	}
	if r.to != endKey() {
		q.bound(r.column, "<", r.to)
	}
	return q
}

// bound compares the key of a column. The first column's values are the ids, and no
// id is before "".
func (q *query) bound(column int, operator string, k key) {
	if column == 0 || k.id == "" {
		q.And(q.columns[column]+" "+operator+" ?", k.value)
		return
	}
	q.And(fmt.Sprintf("(%s, %s) %s (?, ?)", q.columns[column], q.columns[0], operator), k.value, k.id)
}

// filterBy adds filters that are checked on each record; the records are found by
// their range, with an index. PostgreSQL estimates that half of the records satisfy
// a COALESCE; for an equality it expects so few that it would sort them all instead
// of scanning.
func (q *query) filterBy(filters []filter) *query {
	for _, f := range filters {
		name := q.columns[f.column]
		switch f.Match {
		case sim.Begins:
			q.And("COALESCE(substr("+name+", 1, ?) = ?, false)", utf8.RuneCountInString(f.Value), f.Value)
		case sim.Differs:
			q.And(name+" <> ?", f.Value)
		default:
			q.And(name+" = ?", f.Value)
		}
	}
	return q
}

// orderBy is the ORDER BY of a column.
func (l listing) orderBy(column int, descending bool) string {
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

// count counts the selected rows.
func (q *query) count(ctx context.Context, c sqlstore.Conn) (int, error) {
	return sqlstore.Value[int](ctx, c, q.table, "SELECT count(*) FROM "+q.table+q.String(), q.Args()...)
}

// countTo counts the selected rows, up to a limit.
func (q *query) countTo(ctx context.Context, c sqlstore.Conn, limit int) (int, error) {
	text := "SELECT count(*) FROM (SELECT 1 FROM " + q.table + q.String() + " LIMIT " + q.Arg(limit) + ") found"
	return sqlstore.Value[int](ctx, c, q.table, text, q.Args()...)
}

// ids selects the ids of n records in an order, after skipping some.
func (q *query) ids(order string, n, skip int) string {
	return "SELECT " + q.columns[0] + " AS chosen FROM " + q.table + q.String() +
		" ORDER BY " + order + " LIMIT " + q.Arg(n) + " OFFSET " + q.Arg(skip)
}

// sorted is ids, but sorts all selected records.
func (q *query) sorted(order string, n, skip int) string {
	return "WITH found AS MATERIALIZED (SELECT " + strings.Join(q.columns, ", ") + " FROM " + q.table + q.String() + ")" +
		" SELECT " + q.columns[0] + " AS chosen FROM found ORDER BY " + order + " LIMIT " + q.Arg(n) + " OFFSET " + q.Arg(skip)
}

// selection is the records of a page: the statement that selects their ids, and
// their order.
type selection struct {
	ids, order string
	batch      *sqlstore.Batch // of the statement, if it has one
	*query
}

// readPage returns the records of a page of a list, and how many the list has.
func readPage[T any](ctx context.Context, in lists, l listing, q sim.Query, columns string, fields func(*T) []any) ([]T, int, error) {
	out, total, err := readSearch(ctx, l.search(in, q), q.Filters, columns, fields)
	if !errors.Is(err, errChanged) {
		return out, total, err
	}
	again := l.search(in, q)
	if err := again.confirm(ctx); err != nil {
		return nil, 0, err
	}
	return readSearch(ctx, again, q.Filters, columns, fields)
}

// readSearch returns the page of a search. The statement that reads the records also
// reads the version of the list if the search has assumed one, which saves a round trip.
func readSearch[T any](ctx context.Context, s *search, filters []sim.Filter, columns string, fields func(*T) []any) ([]T, int, error) {
	page, total, err := s.page(ctx, filters)
	if err != nil || page == nil {
		if err == nil && s.assumed {
			err = s.confirm(ctx)
		}
		return nil, total, err
	}
	shown, version := fields, int64(0)
	if s.assumed {
		columns = "(" + s.listVersion(&page.Where) + "), " + columns
		shown = func(v *T) []any { return append([]any{&version}, fields(v)...) }
	}
	text := "SELECT " + columns + " FROM (" + page.ids + ") page CROSS JOIN " + page.table + " WHERE account = $1 AND " + page.columns[0] + " = chosen ORDER BY " + page.order
	args := page.Args()
	if page.batch != nil {
		args = append(args, page.batch)
	}
	out, err := sqlstore.List(ctx, s.db, page.table, text, shown, args...)
	if err == nil && s.assumed && version != *s.version {
		err = errChanged
	}
	return out, total, err
}

// keys returns the first keys of a column, at most n, in no order.
func (q *query) keys(ctx context.Context, c sqlstore.Conn, column, n int) ([]key, error) {
	text := "SELECT " + q.columns[column] + ", " + q.columns[0] + " FROM " + q.table + q.String() + " LIMIT " + q.Arg(n)
	return sqlstore.List(ctx, c, q.table, text, (*key).fields, q.Args()...)
}

func (k *key) fields() []any { return []any{&k.value, &k.id} }
