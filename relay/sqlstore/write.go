package sqlstore

import (
	"context"
	"database/sql"
	"fmt"
	"runtime/debug"
	"sync"
	"sync/atomic"
	"time"

	"github.com/penstock/penstock/relay"
)

// Write runs a transaction: what do has done is on disk when Write returns nil,
// and undone otherwise. do may run more than once, and must not keep anything of
// a run that failed.
func (d *DB) Write(ctx context.Context, noun string, do func(ctx context.Context, tx *Tx) error) error {
	if d.writer != nil {
		return Wrap(noun, d.writer.do(ctx, do))
	}
	const tries = 8
	for try := 1; ; try++ {
		err := d.transact(ctx, do)
		if err == nil || !conflicted(err) || try == tries {
			return Wrap(noun, err)
		}
		d.o.Logger.DebugContext(ctx, "transaction is tried again", "of", noun, "error", err)
	}
}

// Exec runs one statement in a transaction of its own and returns how many rows
// it changed.
func (d *DB) Exec(ctx context.Context, noun, query string, args ...any) (int64, error) {
	var n int64
	err := d.Write(ctx, noun, func(ctx context.Context, tx *Tx) error {
		changed, err := tx.Exec(ctx, noun, query, args...)
		n = changed
		return err
	})
	if err != nil {
		return 0, err // the transaction may still be running: see writer.do
	}
	return n, nil
}

// transact runs a transaction on PostgreSQL.
func (d *DB) transact(ctx context.Context, do func(context.Context, *Tx) error) error {
	ctx, cancel := context.WithTimeout(ctx, d.o.Timeout)
	defer cancel()
	tx, err := d.write.BeginTx(ctx, nil)
	if err != nil {
		return err
	}
	defer func() { _ = tx.Rollback() }() // does nothing after a commit
	if err := do(ctx, &Tx{db: d, run: tx}); err != nil {
		return err
	}
	return tx.Commit()
}

// What one commit of SQLite holds at most: transactions that wait are joined
// until there are so many, or that much time has passed.
const (
	joinedMost = 256
	joinedTime = 10 * time.Millisecond
)

// writer runs the transactions of SQLite, one after another, in one goroutine.
// Those that wait are committed together: a commit costs a sync of the disk.
type writer struct {
	db    *DB
	queue chan *writing
	done  chan struct{}
	stop  sync.Once

	// Of the goroutine alone.
	conn  *sql.Conn
	stmts map[string]*sql.Stmt
}

// writing is one transaction that waits for its turn and its commit.
type writing struct {
	ctx      context.Context
	do       func(context.Context, *Tx) error
	answer   chan error
	panicked any
	// begun is set by the writer when it begins, or before that by who waits no
	// longer: then it does not run.
	begun atomic.Bool
}

// result is the answer as who asked for the transaction gets it.
func (one *writing) result(err error) error {
	if one.panicked != nil {
		return fmt.Errorf("transaction: %v", one.panicked)
	}
	return err
}

func newWriter(d *DB) *writer {
	w := &writer{db: d, queue: make(chan *writing, joinedMost), done: make(chan struct{}), stmts: make(map[string]*sql.Stmt)}
	go w.run()
	return w
}

// do has a transaction run. When ctx ends before it begins, it does not run; one
// that has begun is waited for, since its function writes what its caller reads.
func (w *writer) do(ctx context.Context, do func(context.Context, *Tx) error) (err error) {
	one := &writing{ctx: ctx, do: do, answer: make(chan error, 1)}
	defer func() {
		if recover() != nil { // of a send to a queue that is closed
			err = relay.Errorf(relay.KindUnavailable, "the database is closed")
		}
	}()
	select {
	case w.queue <- one:
	case <-ctx.Done():
		return ctx.Err()
	}
	select {
	case err := <-one.answer:
		return one.result(err)
	case <-ctx.Done():
		if one.begun.CompareAndSwap(false, true) {
			return ctx.Err() // it will not run
		}
		return one.result(<-one.answer) // what do captured is not ours before it has ended
	}
}

// close waits for the transactions that were taken in.
func (w *writer) close() {
	w.stop.Do(func() { close(w.queue) })
	<-w.done
}

func (w *writer) run() {
	defer close(w.done)
	defer w.closeConn()
	for first := range w.queue {
		w.together(first)
	}
}

func (w *writer) closeConn() {
	for _, stmt := range w.stmts {
		_ = stmt.Close()
	}
	if w.conn != nil {
		_ = w.conn.Close()
	}
}

// together runs a transaction and those that wait behind it, and commits them.
func (w *writer) together(first *writing) {
	// Statements are not cut off: that would undo what others have done in the
	// same commit.
	ctx := context.Background()
	if err := w.begin(ctx); err != nil {
		first.answer <- err
		return
	}
	var done []*writing
	began := time.Now()
	for one := first; one != nil; one = w.next(len(done), began) {
		err, broken := w.one(ctx, one)
		if broken {
			w.abandon(ctx, append(done, one), err)
			return
		}
		if err != nil {
			one.answer <- err
			continue
		}
		done = append(done, one)
	}
	if _, err := w.conn.ExecContext(ctx, "COMMIT"); err != nil {
		w.abandon(ctx, done, err)
		return
	}
	for _, one := range done {
		one.answer <- nil
	}
}

// next is the next transaction that waits, nil if none does or the commit has
// enough.
func (w *writer) next(n int, began time.Time) *writing {
	if n >= joinedMost || time.Since(began) > joinedTime {
		return nil
	}
	select {
	case one := <-w.queue: // nil when it is closed
		return one
	default:
		return nil
	}
}

func (w *writer) begin(ctx context.Context) (err error) {
	if w.conn == nil {
		if w.conn, err = w.db.write.Conn(ctx); err != nil {
			return err
		}
	}
	_, err = w.conn.ExecContext(ctx, "BEGIN IMMEDIATE")
	return err
}

// one runs one transaction under its savepoint. broken says that the engine gave
// up the whole commit.
func (w *writer) one(ctx context.Context, one *writing) (err error, broken bool) {
	if !one.begun.CompareAndSwap(false, true) {
		return one.ctx.Err(), false
	}
	if err := w.exec(ctx, "SAVEPOINT one"); err != nil {
		return err, true
	}
	err = w.guarded(context.WithoutCancel(one.ctx), one)
	if err != nil {
		if undo := w.exec(ctx, "ROLLBACK TO one"); undo != nil {
			return err, true
		}
	}
	if release := w.exec(ctx, "RELEASE one"); release != nil {
		return release, true
	}
	return err, false
}

// guarded runs a transaction; a panic is told to the one who asked for it.
func (w *writer) guarded(ctx context.Context, one *writing) (err error) {
	defer func() {
		if r := recover(); r != nil {
			one.panicked = fmt.Sprintf("panic: %v\n%s", r, debug.Stack())
			err = relay.Errorf(relay.KindUnexpected, "transaction: panic: %v", r)
		}
	}()
	return one.do(ctx, &Tx{db: w.db, run: w})
}

// abandon undoes what is left of a commit and tells everybody.
func (w *writer) abandon(ctx context.Context, all []*writing, err error) {
	_, _ = w.conn.ExecContext(ctx, "ROLLBACK") // fails if the engine did so already
	for _, one := range all {
		one.answer <- err
	}
}

func (w *writer) exec(ctx context.Context, query string) error {
	_, err := w.ExecContext(ctx, query)
	return err
}

// ExecContext runs a statement on the connection that writes; it is a runner.
func (w *writer) ExecContext(ctx context.Context, query string, args ...any) (sql.Result, error) {
	stmt, err := w.prepared(ctx, query)
	if err != nil {
		return nil, err
	}
	return stmt.ExecContext(ctx, args...)
}

// QueryContext runs a statement on the connection that writes; it is a runner.
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
