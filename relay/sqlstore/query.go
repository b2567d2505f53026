package sqlstore

import (
	"context"
	"database/sql"
	"time"

	"github.com/penstock/penstock/relay"
)

// Conn is what statements run on: a *DB outside of transactions, which only
// reads, or a *Tx.
//
// Parameters of a statement are $1, $2 …; a *Batch may be the last argument, and
// is the table "batch" then.
type Conn interface {
	query(ctx context.Context, query string, args []any) (*sql.Rows, error)
	bound(ctx context.Context) (context.Context, context.CancelFunc)
}

// Scan reads one row into a value.
type Scan[T any] func(row *sql.Rows, v *T) error

// List runs a statement and reads its rows.
func List[T any](ctx context.Context, c Conn, noun, query string, scan Scan[T], args ...any) ([]T, error) {
	ctx, cancel := c.bound(ctx)
	defer cancel()
	rows, err := c.query(ctx, query, args)
	if err != nil {
		return nil, Wrap(noun, err)
	}
	defer func() { _ = rows.Close() }()
	var out []T
	for rows.Next() {
		var v T
		if err := scan(rows, &v); err != nil {
			return nil, Wrap(noun, err)
		}
		out = append(out, v)
	}
	return out, Wrap(noun, rows.Err())
}

// One runs a statement and reads its first row; relay.KindNotFound if it has
// none.
func One[T any](ctx context.Context, c Conn, noun, query string, scan Scan[T], args ...any) (T, error) {
	all, err := List(ctx, c, noun, query, scan, args...)
	if err == nil && len(all) == 0 {
		err = relay.Errorf(relay.KindNotFound, "%s: not found", noun)
	}
	if err != nil {
		var none T
		return none, err
	}
	return all[0], nil
}

// Value runs a statement that answers one value; relay.KindNotFound if it has no
// row.
func Value[T any](ctx context.Context, c Conn, noun, query string, args ...any) (T, error) {
	return One(ctx, c, noun, query, scanValue[T], args...)
}

// Values runs a statement that answers one column.
func Values[T any](ctx context.Context, c Conn, noun, query string, args ...any) ([]T, error) {
	return List(ctx, c, noun, query, scanValue[T], args...)
}

func scanValue[T any](row *sql.Rows, v *T) error { return row.Scan(v) }

func (d *DB) query(ctx context.Context, query string, args []any) (*sql.Rows, error) {
	query, args = d.bind(query, args)
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
	db  *DB
	run runner
}

// runner is a transaction of PostgreSQL, or the connection that writes to SQLite.
type runner interface {
	QueryContext(ctx context.Context, query string, args ...any) (*sql.Rows, error)
	ExecContext(ctx context.Context, query string, args ...any) (sql.Result, error)
}

// Now is the store's clock.
func (t *Tx) Now() time.Time { return t.db.Now() }

func (t *Tx) query(ctx context.Context, query string, args []any) (*sql.Rows, error) {
	query, args = t.db.bind(query, args)
	return t.run.QueryContext(ctx, query, args...)
}

func (t *Tx) bound(ctx context.Context) (context.Context, context.CancelFunc) { return ctx, func() {} }

// Exec runs a statement and returns how many rows it changed.
func (t *Tx) Exec(ctx context.Context, noun, query string, args ...any) (int64, error) {
	query, args = t.db.bind(query, args)
	result, err := t.run.ExecContext(ctx, query, args...)
	if err != nil {
		return 0, Wrap(noun, err)
	}
	n, err := result.RowsAffected()
	return n, Wrap(noun, err)
}
