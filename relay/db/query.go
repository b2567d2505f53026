package db

import (
	"context"
	"database/sql"
	"errors"
	"time"

	"github.com/penstock/penstock/relay"
)

// Conn runs queries: a *DB, which only reads, or a *Tx.
//
// The parameters of a statement are $1, $2 and so on: text, integers, booleans (1, 0), times
// and durations (milliseconds), bytes, and JSON. If the last argument is a *Batch, the
// statement reads it as the table "batch".
type Conn interface {
	query(ctx context.Context, query string, args []any) (*sql.Rows, error)
	withTimeout(ctx context.Context) (context.Context, context.CancelFunc)
	wrap(label string, err error) error
	sealer() Sealer
}

// Executor runs statements that change rows: a *Tx, or a *DB, which runs each in a
// transaction of its own.
type Executor interface {
	// Run runs a statement.
	Run(ctx context.Context, label, query string, args ...any) error
	// Exec runs a statement and returns the number of changed rows.
	Exec(ctx context.Context, label, query string, args ...any) (int64, error)
}

// List runs a statement and reads its rows. fields returns a pointer for each column of a
// row, and may return a func() as its last element, which List calls after each row to
// complete the value. A function without this element can also be passed to BatchOf. A
// statement that changes rows must not return Sealed columns, because List may run it twice.
func List[T any](ctx context.Context, c Conn, label, query string, fields func(v *T) []any, args ...any) ([]T, error) {
	if empty(args) {
		return nil, nil
	}
	ctx, cancel := c.withTimeout(ctx)
	defer cancel()
	rows, err := list(ctx, c, label, query, fields, args, false)
	if errors.Is(err, relay.ErrUndecryptable) { // another gateway may have added a key
		if err := c.sealer().Load(ctx); err != nil {
			return nil, err
		}
		rows, err = list(ctx, c, label, query, fields, args, true)
	}
	return rows, err
}

// list runs a statement and reads its rows, with the keys of the Sealer that are in memory.
// final means that these keys were just loaded from the database, see SealedOr.
func list[T any](ctx context.Context, c Conn, label, query string, fields func(v *T) []any, args []any, final bool) ([]T, error) {
	rows, err := c.query(ctx, query, args)
	if err != nil {
		return nil, c.wrap(label, err)
	}
	defer func() { _ = rows.Close() }()
	var values []T
	var v, zero T
	columns, complete := fields(&v), func() {}
	for _, column := range columns {
		if s, ok := column.(*sealedColumn); ok {
			s.sealer, s.final = c.sealer(), final
		}
	}
	if fn, ok := columns[len(columns)-1].(func()); ok {
		columns, complete = columns[:len(columns)-1], fn
	}
	for rows.Next() {
		if err := rows.Scan(columns...); err != nil {
			return nil, c.wrap(label, err)
		}
		complete()
		values = append(values, v)
		v = zero
	}
	return values, c.wrap(label, rows.Err())
}

// One runs a statement and reads its first row. It returns relay.KindNotFound if there are no
// rows.
func One[T any](ctx context.Context, c Conn, label, query string, fields func(v *T) []any, args ...any) (T, error) {
	values, err := List(ctx, c, label, query, fields, args...)
	if err == nil && len(values) == 0 {
		err = NotFound(label)
	}
	if err != nil {
		var zero T
		return zero, err
	}
	return values[0], nil
}

// NotFound returns the error of a missing record.
func NotFound(label string) error { return relay.Errorf(relay.KindNotFound, "%s: not found", label) }

// Value runs a statement that returns one value. It returns relay.KindNotFound if there are no
// rows.
func Value[T any](ctx context.Context, c Conn, label, query string, args ...any) (T, error) {
	return One(ctx, c, label, query, SingleColumn[T], args...)
}

// Values runs a statement that returns one column.
func Values[T any](ctx context.Context, c Conn, label, query string, args ...any) ([]T, error) {
	return List(ctx, c, label, query, SingleColumn[T], args...)
}

// SingleColumn returns the pointer to a value that is the only column of a row.
func SingleColumn[T any](v *T) []any { return []any{v} }

// Map runs a statement that returns two columns: keys and their values.
func Map[K comparable, V any](ctx context.Context, c Conn, label, query string, args ...any) (map[K]V, error) {
	type pair struct {
		key   K
		value V
	}
	pairs, err := List(ctx, c, label, query, func(p *pair) []any { return []any{&p.key, &p.value} }, args...)
	byKey := make(map[K]V, len(pairs))
	for _, p := range pairs {
		byKey[p.key] = p.value
	}
	return byKey, err
}

// Page runs a query for the first limit rows that meet the conditions of w.
func Page[T any](ctx context.Context, c Conn, label, query string, w *Where, order string, limit int, fields func(v *T) []any) ([]T, error) {
	query += w.String() + " ORDER BY " + order + " LIMIT " + w.Arg(limit)
	return List(ctx, c, label, query, fields, w.Args()...)
}

// IndexBy returns values by their keys. Of several values with the same key, IndexBy returns the last.
func IndexBy[K comparable, V any](values []V, key func(V) K) map[K]V {
	byKey := make(map[K]V, len(values))
	for _, v := range values {
		byKey[key(v)] = v
	}
	return byKey
}

// Index returns pointers to the values of List by their keys.
func Index[K comparable, V any](values []V, err error, key func(*V) K) (map[K]*V, error) {
	byKey := make(map[K]*V, len(values))
	for i := range values {
		byKey[key(&values[i])] = &values[i]
	}
	return byKey, err
}

// Numbered runs a statement over a batch of n rows and returns a value for each of them. The
// statement returns batch.n and the columns of the value.
func Numbered[T any](ctx context.Context, c Conn, label, query string, n int, fields func(v *T) []any, args ...any) ([]T, error) {
	type numbered struct {
		n int
		v T
	}
	rows, err := List(ctx, c, label, query, func(r *numbered) []any { return append([]any{&r.n}, fields(&r.v)...) }, args...)
	values := make([]T, n)
	for _, r := range rows {
		values[r.n-1] = r.v
	}
	return values, err
}

// OrZero returns the value without an error if the error is relay.KindNotFound.
func OrZero[T any](v T, err error) (T, error) { return v, IgnoreNotFound(err) }

// IgnoreNotFound returns nil for relay.KindNotFound, and any other error unchanged.
func IgnoreNotFound(err error) error {
	if IsNotFound(err) {
		return nil
	}
	return err
}

// IsNotFound reports whether an error means that a record does not exist.
func IsNotFound(err error) bool { return relay.KindOf(err) == relay.KindNotFound }

// Returning runs one statement that changes rows and returns them (RETURNING), in a
// transaction of its own.
func Returning[T any](ctx context.Context, d *DB, label, query string, fields func(v *T) []any, args ...any) ([]T, error) {
	if empty(args) {
		return nil, nil
	}
	return single(ctx, d, label, args, func(ctx context.Context, tx *Tx) ([]T, error) {
		return List(ctx, tx, label, query, fields, args...)
	})
}

// MustChange runs a statement and returns relay.KindNotFound if it changes no row.
func MustChange(ctx context.Context, x Executor, label, query string, args ...any) error {
	return ChangeOr(ctx, x, NotFound(label), label, query, args...)
}

// ChangeOr runs a statement and returns the error unchanged if it changes no row.
func ChangeOr(ctx context.Context, x Executor, unchanged error, label, query string, args ...any) error {
	n, err := x.Exec(ctx, label, query, args...)
	if err == nil && n == 0 {
		err = unchanged
	}
	return err
}

func (d *DB) query(ctx context.Context, query string, args []any) (*sql.Rows, error) {
	defer d.observe("read", time.Now())
	query, args, err := d.bind(query, args, &sealedValues{})
	if err != nil {
		return nil, err
	}
	if d.writer == nil {
		return d.readPool.QueryContext(ctx, query, args...)
	}
	stmt, err := d.prepared(ctx, query)
	if err != nil {
		return nil, err
	}
	return stmt.QueryContext(ctx, args...)
}

// withTimeout limits a statement on PostgreSQL. SQLite runs in the process and cannot hang.
func (d *DB) withTimeout(ctx context.Context) (context.Context, context.CancelFunc) {
	if d.writer != nil {
		return ctx, func() {}
	}
	return context.WithTimeout(ctx, d.opts.Timeout)
}

func (d *DB) prepared(ctx context.Context, query string) (*sql.Stmt, error) {
	if stmt, ok := d.stmts.Load(query); ok {
		return stmt.(*sql.Stmt), nil
	}
	stmt, err := d.readPool.PrepareContext(ctx, query)
	if err != nil {
		return nil, err
	}
	if existing, loaded := d.stmts.LoadOrStore(query, stmt); loaded {
		return existing.(*sql.Stmt), stmt.Close()
	}
	return stmt, nil
}

// Tx is a transaction of Write.
type Tx struct {
	db     *DB
	runner runner
	sealed sealedValues
}

// runner is a transaction of PostgreSQL, or the connection that writes to SQLite.
type runner interface {
	QueryContext(ctx context.Context, query string, args ...any) (*sql.Rows, error)
	ExecContext(ctx context.Context, query string, args ...any) (sql.Result, error)
}

func (d *DB) sealer() Sealer { return d.keys }
func (t *Tx) sealer() Sealer { return t.db.keys }

// Now returns the time of the database's clock.
func (t *Tx) Now() time.Time { return t.db.Now() }

func (t *Tx) query(ctx context.Context, query string, args []any) (*sql.Rows, error) {
	query, args, err := t.db.bind(query, args, &t.sealed)
	if err != nil {
		return nil, err
	}
	return t.runner.QueryContext(ctx, query, args...)
}

func (t *Tx) withTimeout(ctx context.Context) (context.Context, context.CancelFunc) {
	return ctx, func() {}
}

// Exec runs a statement and returns the number of changed rows.
func (t *Tx) Exec(ctx context.Context, label, query string, args ...any) (int64, error) {
	if empty(args) {
		return 0, nil
	}
	query, args, err := t.db.bind(query, args, &t.sealed)
	if err != nil {
		return 0, t.wrap(label, err)
	}
	result, err := t.runner.ExecContext(ctx, query, args...)
	if err != nil {
		return 0, t.wrap(label, err)
	}
	n, err := result.RowsAffected()
	return n, t.wrap(label, err)
}

// Run runs a statement.
func (t *Tx) Run(ctx context.Context, label, query string, args ...any) error {
	_, err := t.Exec(ctx, label, query, args...)
	return err
}

// Statement is a statement with its arguments.
type Statement struct {
	query     string
	args      []any
	unchanged error // returned if the statement changes no row
}

// Do returns a statement for RunAll.
func Do(query string, args ...any) Statement { return Statement{query: query, args: args} }

// Or returns the statement with the error to return if it changes no row.
func (s Statement) Or(unchanged error) Statement {
	s.unchanged = unchanged
	return s
}

// RunAll runs statements one after another, until one fails.
func (t *Tx) RunAll(ctx context.Context, label string, statements ...Statement) error {
	for _, s := range statements {
		if err := ChangeOr(ctx, t, s.unchanged, label, s.query, s.args...); err != nil {
			return err
		}
	}
	return nil
}

// RunAll runs statements one after another, in one transaction.
func (d *DB) RunAll(ctx context.Context, label string, statements ...Statement) error {
	return d.Write(ctx, label, func(ctx context.Context, tx *Tx) error { return tx.RunAll(ctx, label, statements...) })
}
