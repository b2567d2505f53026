package db

import (
	"context"
	"database/sql"
	"errors"
	"time"

	"github.com/penstock/penstock/relay"
)

// Conn is what statements run on: a *DB outside of transactions, which only
// reads, or a *Tx.
//
// Parameters of a statement are $1, $2 …: text, whole numbers, truth (1, 0), times
// and durations (milliseconds), bytes, and JSON. A *Batch may be the last argument,
// and is the table "batch" then.
type Conn interface {
	query(ctx context.Context, query string, args []any) (*sql.Rows, error)
	bound(ctx context.Context) (context.Context, context.CancelFunc)
	wrap(noun string, err error) error
	sealer() Sealer
}

// Executor runs statements that change rows: a *Tx, or a *DB, which runs each in a
// transaction of its own.
type Executor interface {
	// Run runs a statement.
	Run(ctx context.Context, noun, query string, args ...any) error
	// Exec runs a statement and returns how many rows it changed.
	Exec(ctx context.Context, noun, query string, args ...any) (int64, error)
}

// List runs a statement and reads its rows: the columns of each to where fields says. A
// func() as the last of these is called when a row has been read, to complete the value.
// The same function, without it, makes a batch of values, see BatchOf. A statement that
// changes something does not return columns that are Sealed: it may run twice.
func List[T any](ctx context.Context, c Conn, noun, query string, fields func(v *T) []any, args ...any) ([]T, error) {
	if empty(args) {
		return nil, nil
	}
	ctx, cancel := c.bound(ctx)
	defer cancel()
	all, err := list(ctx, c, noun, query, fields, args, false)
	if errors.Is(err, relay.ErrUnopened) { // another gateway may have added a key
		if err := c.sealer().Load(ctx); err != nil {
			return nil, err
		}
		all, err = list(ctx, c, noun, query, fields, args, true)
	}
	return all, err
}

// list is List with the keys that are loaded; final says that these are those of the
// database, see SealedOr.
func list[T any](ctx context.Context, c Conn, noun, query string, fields func(v *T) []any, args []any, final bool) ([]T, error) {
	rows, err := c.query(ctx, query, args)
	if err != nil {
		return nil, c.wrap(noun, err)
	}
	defer func() { _ = rows.Close() }()
	var all []T
	var v, zero T
	columns, complete := fields(&v), func() {}
	for _, column := range columns {
		if s, ok := column.(*sealedColumn); ok {
			s.sealer, s.final = c.sealer(), final
		}
	}
	if last, ok := columns[len(columns)-1].(func()); ok {
		columns, complete = columns[:len(columns)-1], last
	}
	for rows.Next() {
		if err := rows.Scan(columns...); err != nil {
			return nil, c.wrap(noun, err)
		}
		complete()
		all = append(all, v)
		v = zero
	}
	return all, c.wrap(noun, rows.Err())
}

// One runs a statement and reads its first row; relay.KindNotFound if it has
// none.
func One[T any](ctx context.Context, c Conn, noun, query string, fields func(v *T) []any, args ...any) (T, error) {
	all, err := List(ctx, c, noun, query, fields, args...)
	if err == nil && len(all) == 0 {
		err = NotFound(noun)
	}
	if err != nil {
		var none T
		return none, err
	}
	return all[0], nil
}

// NotFound is the error for a record that is not there.
func NotFound(noun string) error { return relay.Errorf(relay.KindNotFound, "%s: not found", noun) }

// Value runs a statement that answers one value; relay.KindNotFound if it has no
// row.
func Value[T any](ctx context.Context, c Conn, noun, query string, args ...any) (T, error) {
	return One(ctx, c, noun, query, Self[T], args...)
}

// Values runs a statement that answers one column.
func Values[T any](ctx context.Context, c Conn, noun, query string, args ...any) ([]T, error) {
	return List(ctx, c, noun, query, Self[T], args...)
}

// Self is a value that is the only column.
func Self[T any](v *T) []any { return []any{v} }

// Map runs a statement that answers keys and their values.
func Map[K comparable, V any](ctx context.Context, c Conn, noun, query string, args ...any) (map[K]V, error) {
	type pair struct {
		key   K
		value V
	}
	all, err := List(ctx, c, noun, query, func(p *pair) []any { return []any{&p.key, &p.value} }, args...)
	out := make(map[K]V, len(all))
	for _, p := range all {
		out[p.key] = p.value
	}
	return out, err
}

// Page runs a query for the first rows that meet conditions, in an order.
func Page[T any](ctx context.Context, c Conn, noun, query string, w *Where, order string, limit int, fields func(v *T) []any) ([]T, error) {
	query += w.String() + " ORDER BY " + order + " LIMIT " + w.Arg(limit)
	return List(ctx, c, noun, query, fields, w.Args()...)
}

// By finds values by their keys; of several the last.
func By[K comparable, V any](all []V, key func(V) K) map[K]V {
	out := make(map[K]V, len(all))
	for _, v := range all {
		out[key(v)] = v
	}
	return out
}

// Index finds the values that List has returned by their keys; of several the last.
func Index[K comparable, V any](all []V, err error, key func(*V) K) (map[K]*V, error) {
	out := make(map[K]*V, len(all))
	for i := range all {
		out[key(&all[i])] = &all[i]
	}
	return out, err
}

// Numbered runs a statement over a batch of n rows and returns a value for each: rows are
// the number of one of them, batch.n, and the columns of its value.
func Numbered[T any](ctx context.Context, c Conn, noun, query string, n int, fields func(v *T) []any, args ...any) ([]T, error) {
	type numbered struct {
		n int
		v T
	}
	found, err := List(ctx, c, noun, query, func(r *numbered) []any { return append([]any{&r.n}, fields(&r.v)...) }, args...)
	all := make([]T, n)
	for _, r := range found {
		all[r.n-1] = r.v
	}
	return all, err
}

// OrZero returns the value without an error if the error is relay.KindNotFound.
func OrZero[T any](v T, err error) (T, error) { return v, IgnoreNotFound(err) }

// IgnoreNotFound returns nil for an error of relay.KindNotFound, others as they are.
func IgnoreNotFound(err error) error {
	if IsNotFound(err) {
		return nil
	}
	return err
}

// IsNotFound reports whether an error says that there is no such record.
func IsNotFound(err error) bool {
	return relay.KindOf(err) == relay.KindNotFound
}

// Returning runs one statement that changes rows and returns them (RETURNING), in a
// transaction of its own.
func Returning[T any](ctx context.Context, d *DB, noun, query string, fields func(v *T) []any, args ...any) ([]T, error) {
	if empty(args) {
		return nil, nil
	}
	return single(ctx, d, noun, args, func(ctx context.Context, tx *Tx) ([]T, error) {
		return List(ctx, tx, noun, query, fields, args...)
	})
}

// MustChange runs a statement that has to change a row; relay.KindNotFound if it
// changes none.
func MustChange(ctx context.Context, x Executor, noun, query string, args ...any) error {
	return ChangeOr(ctx, x, NotFound(noun), noun, query, args...)
}

// ChangeOr runs a statement that has to change a row, and returns the error unchanged if
// it changes none.
func ChangeOr(ctx context.Context, x Executor, unchanged error, noun, query string, args ...any) error {
	n, err := x.Exec(ctx, noun, query, args...)
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
		return d.read.QueryContext(ctx, query, args...)
	}
	stmt, err := d.prepared(ctx, query)
	if err != nil {
		return nil, err
	}
	return stmt.QueryContext(ctx, args...)
}

// bound bounds a statement on a server; a local file answers or fails by itself.
func (d *DB) bound(ctx context.Context) (context.Context, context.CancelFunc) {
	if d.writer != nil {
		return ctx, func() {}
	}
	return context.WithTimeout(ctx, d.o.Timeout)
}

// prepared is a statement of SQLite's readers, which keep it compiled.
func (d *DB) prepared(ctx context.Context, query string) (*sql.Stmt, error) {
	if stmt, ok := d.stmts.Load(query); ok {
		return stmt.(*sql.Stmt), nil
	}
	stmt, err := d.read.PrepareContext(ctx, query)
	if err != nil {
		return nil, err
	}
	if other, loaded := d.stmts.LoadOrStore(query, stmt); loaded {
		return other.(*sql.Stmt), stmt.Close()
	}
	return stmt, nil
}

// Tx is a transaction of Write.
type Tx struct {
	db     *DB
	run    runner
	sealed sealedValues
}

// runner is a transaction of PostgreSQL, or the connection that writes to SQLite.
type runner interface {
	QueryContext(ctx context.Context, query string, args ...any) (*sql.Rows, error)
	ExecContext(ctx context.Context, query string, args ...any) (sql.Result, error)
}

func (d *DB) sealer() Sealer { return d.sealed }
func (t *Tx) sealer() Sealer { return t.db.sealed }

// Now is the store's clock.
func (t *Tx) Now() time.Time { return t.db.Now() }

func (t *Tx) query(ctx context.Context, query string, args []any) (*sql.Rows, error) {
	query, args, err := t.db.bind(query, args, &t.sealed)
	if err != nil {
		return nil, err
	}
	return t.run.QueryContext(ctx, query, args...)
}

func (t *Tx) bound(ctx context.Context) (context.Context, context.CancelFunc) { return ctx, func() {} }

// Exec runs a statement and returns how many rows it changed.
func (t *Tx) Exec(ctx context.Context, noun, query string, args ...any) (int64, error) {
	if empty(args) {
		return 0, nil
	}
	query, args, err := t.db.bind(query, args, &t.sealed)
	if err != nil {
		return 0, t.wrap(noun, err)
	}
	result, err := t.run.ExecContext(ctx, query, args...)
	if err != nil {
		return 0, t.wrap(noun, err)
	}
	n, err := result.RowsAffected()
	return n, t.wrap(noun, err)
}

// Run runs a statement.
func (t *Tx) Run(ctx context.Context, noun, query string, args ...any) error {
	_, err := t.Exec(ctx, noun, query, args...)
	return err
}

// Statement is a statement with its arguments.
type Statement struct {
	query     string
	args      []any
	unchanged error // if it changes no row
}

// Do makes a statement of a sequence, see RunAll.
func Do(query string, args ...any) Statement { return Statement{query: query, args: args} }

// Or is the statement that fails with an error if it changes no row.
func (s Statement) Or(unchanged error) Statement {
	s.unchanged = unchanged
	return s
}

// RunAll runs statements one after another, until one fails.
func (t *Tx) RunAll(ctx context.Context, noun string, all ...Statement) error {
	for _, s := range all {
		if err := ChangeOr(ctx, t, s.unchanged, noun, s.query, s.args...); err != nil {
			return err
		}
	}
	return nil
}

// RunAll runs statements one after another, in one transaction.
func (d *DB) RunAll(ctx context.Context, noun string, all ...Statement) error {
	return d.Write(ctx, noun, func(ctx context.Context, tx *Tx) error { return tx.RunAll(ctx, noun, all...) })
}
