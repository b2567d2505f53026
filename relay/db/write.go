package db

import (
	"context"
	"database/sql"
	"fmt"
	"runtime/debug"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/penstock/penstock/relay"
)

// Write runs do in a transaction. Its changes are on disk when Write returns nil, and rolled
// back otherwise. do may run more than once, and must not keep results of a failed run.
func (d *DB) Write(ctx context.Context, label string, do func(ctx context.Context, tx *Tx) error) error {
	return d.perform(ctx, label, false, do)
}

// perform runs do in the writer of SQLite or in a transaction of PostgreSQL, which is
// repeated after a conflict. With autocommit, do runs one statement, which PostgreSQL begins
// and commits by itself in one round trip.
func (d *DB) perform(ctx context.Context, label string, autocommit bool, do txFunc) error {
	defer d.observe("write", time.Now())
	do = d.verifySealed(do)
	if d.writer != nil {
		return d.wrap(label, d.writer.do(ctx, do))
	}
	const tries = 8
	for try := 1; ; try++ {
		err := d.transact(ctx, autocommit, do)
		if err == nil || !conflicted(err) || try == tries {
			return d.wrap(label, err)
		}
		d.opts.Logger.DebugContext(ctx, "retrying transaction", "label", label, "error", err)
	}
}

type txFunc func(ctx context.Context, tx *Tx) error

func (d *DB) observe(operation string, began time.Time) {
	if d.opts.Observe != nil {
		d.opts.Observe(operation, time.Since(began))
	}
}

// Transact runs do in a transaction, as Write does, and returns the value of do.
func Transact[T any](ctx context.Context, d *DB, label string, do func(ctx context.Context, tx *Tx) (T, error)) (T, error) {
	return perform(ctx, d, label, false, do)
}

// single runs do, which runs one statement with these arguments and commits it by itself. Sealed
// values need a transaction, because a further statement verifies them.
func single[T any](ctx context.Context, d *DB, label string, args []any, do func(ctx context.Context, tx *Tx) (T, error)) (T, error) {
	return perform(ctx, d, label, !seals(args), do)
}

func perform[T any](ctx context.Context, d *DB, label string, autocommit bool, do func(ctx context.Context, tx *Tx) (T, error)) (T, error) {
	var result T
	err := d.perform(ctx, label, autocommit, func(ctx context.Context, tx *Tx) (err error) {
		result, err = do(ctx, tx)
		return err
	})
	if err != nil {
		var zero T
		return zero, err
	}
	return result, nil
}

// Exec runs one statement in a transaction of its own and returns the number of changed rows.
func (d *DB) Exec(ctx context.Context, label, query string, args ...any) (n int64, err error) {
	if empty(args) {
		return 0, nil
	}
	return single(ctx, d, label, args, func(ctx context.Context, tx *Tx) (int64, error) { return tx.Exec(ctx, label, query, args...) })
}

// Run runs one statement in a transaction of its own.
func (d *DB) Run(ctx context.Context, label, query string, args ...any) error {
	_, err := d.Exec(ctx, label, query, args...)
	return err
}

// MaxSweep is the usual maximum number of rows that one transaction deletes, so that other
// transactions do not wait long.
const MaxSweep = 5000

// Repeat runs a transaction again until it returns a count below limit.
func (d *DB) Repeat(ctx context.Context, label string, limit int, do func(ctx context.Context, tx *Tx) (int, error)) error {
	for {
		n, err := Transact(ctx, d, label, do)
		if err != nil || n < limit {
			return err
		}
	}
}

// Sweep repeats a statement until it changes fewer rows than limit, which is its last
// parameter.
func (d *DB) Sweep(ctx context.Context, label string, limit int, query string, args ...any) error {
	return d.Repeat(ctx, label, limit, func(ctx context.Context, tx *Tx) (int, error) {
		n, err := tx.Exec(ctx, label, query, append(slices.Clip(args), limit)...)
		return int(n), err
	})
}

// SweepExpired deletes the rows of a table in which a column, such as expires, has a time that is
// not after now. It keeps rows with 0 in the column. key is the table's primary key.
func (d *DB) SweepExpired(ctx context.Context, label, table, key, column string, now time.Time) error {
	return d.Sweep(ctx, label, MaxSweep, fmt.Sprintf(`DELETE FROM %[1]s WHERE (%[2]s) IN (
  SELECT %[2]s FROM %[1]s WHERE %[3]s > 0 AND %[3]s <= $1 ORDER BY %[3]s LIMIT $2 {skip locked})`, table, key, column), now)
}

func (d *DB) transact(ctx context.Context, autocommit bool, do txFunc) error {
	ctx, cancel := context.WithTimeout(ctx, d.opts.Timeout)
	defer cancel()
	if autocommit {
		return do(ctx, &Tx{db: d, runner: d.writePool})
	}
	tx, err := d.writePool.BeginTx(ctx, nil)
	if err != nil {
		return err
	}
	defer func() { _ = tx.Rollback() }() // does nothing after a commit
	if err := do(ctx, &Tx{db: d, runner: tx}); err != nil {
		return err
	}
	return tx.Commit()
}

// The limits of one commit of SQLite: waiting transactions are joined until there are
// maxJoined of them or maxJoinTime has passed.
const (
	maxJoined   = 256
	maxJoinTime = 10 * time.Millisecond
)

// writer runs the transactions of SQLite, one after another, in one goroutine. It commits
// waiting transactions together, because a commit costs a sync of the disk.
type writer struct {
	db    *DB
	queue chan *pendingWrite
	quit  chan struct{} // closed by close
	done  chan struct{} // closed when the goroutine has ended
	stop  sync.Once

	// Only the goroutine uses these.
	conn  *sql.Conn
	stmts map[string]*sql.Stmt
}

type pendingWrite struct {
	ctx    context.Context
	do     txFunc
	answer chan error
	err    error // of do; returned after the commit
	// begun is set by the writer when the transaction begins. A caller whose context has
	// ended sets it before, so that the transaction does not run.
	begun atomic.Bool
}

// do queues a transaction and waits for its end. If ctx ends before the transaction begins, the
// transaction does not run. If ctx ends later, do still waits, because the transaction may write
// to variables of the caller.
func (w *writer) do(ctx context.Context, do txFunc) error {
	if ctx.Err() != nil {
		return ctx.Err()
	}
	p := &pendingWrite{ctx: ctx, do: do, answer: make(chan error, 1)}
	closed := relay.Errorf(relay.KindUnavailable, "the database is closed")
	select {
	case w.queue <- p:
	case <-w.quit:
		return closed
	case <-ctx.Done():
		return ctx.Err()
	}
	reason := error(closed)
	select {
	case err := <-p.answer:
		return err
	case <-w.done: // p may have been queued after the last transaction
	case <-ctx.Done():
		reason = ctx.Err()
	}
	if p.begun.CompareAndSwap(false, true) {
		return reason // p will not run
	}
	return <-p.answer
}

func (w *writer) close() {
	w.stop.Do(func() { close(w.quit) })
	<-w.done
}

func (w *writer) run() {
	defer close(w.done)
	defer func() {
		for _, stmt := range w.stmts {
			_ = stmt.Close()
		}
		if w.conn != nil {
			_ = w.conn.Close()
		}
	}()
	for {
		select {
		case p := <-w.queue:
			w.runJoined(p)
		case <-w.quit:
			for p := w.next(0, time.Now()); p != nil; p = w.next(0, time.Now()) {
				w.runJoined(p)
			}
			return
		}
	}
}

// runJoined runs a transaction and the transactions queued behind it, and commits them with the
// progress of the database.
func (w *writer) runJoined(p *pendingWrite) {
	// The context never ends: cancelling a statement would roll back all transactions of
	// the commit.
	ctx := context.Background()
	var err error
	if w.conn == nil {
		w.conn, err = w.db.writePool.Conn(ctx)
	}
	if err == nil {
		_, err = w.conn.ExecContext(ctx, "BEGIN IMMEDIATE")
	}
	if err != nil {
		p.answer <- err
		return
	}
	var joined []*pendingWrite
	began := time.Now()
	for p != nil {
		joined = append(joined, p)
		if err = w.runOne(ctx, p); err != nil {
			break
		}
		p = w.next(len(joined), began)
	}
	if err == nil {
		err = w.db.progress.Record(ctx, w)
	}
	if err == nil {
		_, err = w.conn.ExecContext(ctx, "COMMIT")
	}
	if err != nil {
		_, _ = w.conn.ExecContext(ctx, "ROLLBACK") // fails if the engine has rolled back already
		for _, p := range joined {
			p.answer <- err
		}
		return
	}
	w.db.progress.Committed()
	// A transaction may have failed because of an earlier one in the same commit. Its caller
	// is notified after the commit, when other connections can read both.
	for _, p := range joined {
		p.answer <- p.err
	}
}

// next returns the next transaction of the queue; nil if the queue is empty or the commit is
// full.
func (w *writer) next(n int, began time.Time) *pendingWrite {
	if n >= maxJoined || time.Since(began) > maxJoinTime {
		return nil
	}
	select {
	case p := <-w.queue:
		return p
	default:
		return nil
	}
}

// runOne runs one transaction under its savepoint. It returns an error if the whole commit
// has failed.
func (w *writer) runOne(ctx context.Context, p *pendingWrite) error {
	if !p.begun.CompareAndSwap(false, true) {
		p.err = p.ctx.Err()
		return nil
	}
	if err := w.exec(ctx, "SAVEPOINT one"); err != nil {
		return err
	}
	if p.err = w.runSafely(context.WithoutCancel(p.ctx), p); p.err != nil {
		if err := w.exec(ctx, "ROLLBACK TO one"); err != nil {
			return p.err
		}
	}
	return w.exec(ctx, "RELEASE one")
}

// runSafely runs a transaction and converts a panic to an error of its caller.
func (w *writer) runSafely(ctx context.Context, p *pendingWrite) (err error) {
	defer func() {
		if r := recover(); r != nil {
			err = relay.Errorf(relay.KindUnexpected, "transaction: panic: %v\n%s", r, debug.Stack())
		}
	}()
	return p.do(ctx, &Tx{db: w.db, runner: w})
}

func (w *writer) exec(ctx context.Context, query string) error {
	_, err := w.ExecContext(ctx, query)
	return err
}

// ExecContext runs a statement on the connection that writes. It makes writer a runner.
func (w *writer) ExecContext(ctx context.Context, query string, args ...any) (sql.Result, error) {
	stmt, err := w.prepared(ctx, query)
	if err != nil {
		return nil, err
	}
	return stmt.ExecContext(ctx, args...)
}

// QueryContext runs a query on the connection that writes. It makes writer a runner.
func (w *writer) QueryContext(ctx context.Context, query string, args ...any) (*sql.Rows, error) {
	stmt, err := w.prepared(ctx, query)
	if err != nil {
		return nil, err
	}
	return stmt.QueryContext(ctx, args...)
}

func (w *writer) prepared(ctx context.Context, query string) (*sql.Stmt, error) {
	if stmt, ok := w.stmts[query]; ok {
		return stmt, nil
	}
	stmt, err := w.conn.PrepareContext(ctx, query)
	if err == nil {
		w.stmts[query] = stmt
	}
	return stmt, err
}
