package db

import (
	"context"
	"fmt"
	"strings"

	"github.com/penstock/penstock/relay"
)

// Documents is a table of records that are stored as JSON. The value is the name of the table,
// which has the columns account BIGINT, id TEXT and doc TEXT and the primary key
// (account, id). Records without an account have account 0.
type Documents[T any] string

// Label returns the name of a record for errors.
func (d Documents[T]) Label(id string) string {
	return strings.ReplaceAll(string(d), "_", " ") + " " + id
}

// Get loads a record. It returns relay.KindNotFound if the record does not exist.
func (d Documents[T]) Get(ctx context.Context, c Conn, acct relay.AccountID, id string) (T, error) {
	return One(ctx, c, d.Label(id), "SELECT doc FROM "+string(d)+" WHERE account = $1 AND id = $2", Doc[T], acct, id)
}

// All loads every record of an account, sorted by id.
func (d Documents[T]) All(ctx context.Context, c Conn, acct relay.AccountID) ([]T, error) {
	return List(ctx, c, d.Label("list"), "SELECT doc FROM "+string(d)+" WHERE account = $1 ORDER BY id", Doc[T], acct)
}

// Put creates or replaces a record.
func (d Documents[T]) Put(ctx context.Context, x Executor, acct relay.AccountID, id string, v T) error {
	return x.Run(ctx, d.Label(id), Upsert(string(d), "account, id", "doc"), acct, id, JSON(v))
}

// Change locks a record, saves the result of change and reports whether it differs from the
// stored record. It returns relay.KindNotFound if the record does not exist, and errors of
// change unchanged.
func (d Documents[T]) Change(ctx context.Context, tx *Tx, acct relay.AccountID, id string, change func(*T) error) (v T, changed bool, err error) {
	label := d.Label(id)
	oldDoc, err := Value[string](ctx, tx, label, "SELECT doc FROM "+string(d)+" WHERE account = $1 AND id = $2 {for update}", acct, id)
	if err != nil {
		return v, false, err
	}
	v, newDoc, err := Edit(label, oldDoc, change)
	if err != nil || newDoc == oldDoc {
		return v, false, err
	}
	return v, true, tx.Run(ctx, label, "UPDATE "+string(d)+" SET doc = $1 WHERE account = $2 AND id = $3", newDoc, acct, id)
}

// Edit returns the result of edit for a record, and its JSON. It returns errors of edit
// unchanged.
func Edit[T any](label, oldDoc string, edit func(*T) error) (v T, newDoc string, err error) {
	if err := Decode([]byte(oldDoc), &v); err != nil {
		return v, "", Wrap(label, err)
	}
	if err := edit(&v); err != nil {
		return v, "", err
	}
	newDoc, err = Encode(v)
	return v, newDoc, Wrap(label, err)
}

// Delete removes a record. It returns relay.KindNotFound if the record does not exist.
func (d Documents[T]) Delete(ctx context.Context, x Executor, acct relay.AccountID, id string) error {
	return MustChange(ctx, x, d.Label(id), "DELETE FROM "+string(d)+" WHERE account = $1 AND id = $2", acct, id)
}

// Upsert returns the statement that creates or replaces a row by its key. The parameters are
// the columns of the key and the other columns.
func Upsert(table, key, columns string) string {
	names := key + ", " + columns
	values := make([]string, strings.Count(names, ",")+1)
	for i := range values {
		values[i] = fmt.Sprintf("$%d", i+1)
	}
	set := strings.Split(columns, ", ")
	for i, c := range set {
		set[i] = c + " = excluded." + c
	}
	return "INSERT INTO " + table + " (" + names + ") VALUES (" + strings.Join(values, ", ") + ") ON CONFLICT (" + key + ") DO UPDATE SET " + strings.Join(set, ", ")
}

// Bump increments a version. Caches compare it to notice a change.
func (t *Tx) Bump(ctx context.Context, name string) error {
	return t.RunAll(ctx, "version "+name, Bump(name))
}

// Bump returns the statement that increments a version.
func Bump(name string) Statement {
	return Do(`INSERT INTO version (name, n) VALUES ($1, 1) ON CONFLICT (name) DO UPDATE SET n = version.n + 1`, name)
}

// Version returns a version: the number of its increments plus the number that Invalidate
// has set.
func Version(ctx context.Context, c Conn, name string) (int64, error) {
	return Value[int64](ctx, c, "version "+name, "SELECT CAST(COALESCE(SUM(n), 0) AS BIGINT) FROM version WHERE name IN ('', $1)", name)
}

// Versions returns the versions of many names, in one round trip.
func Versions(ctx context.Context, c Conn, names []string) (map[string]int64, error) {
	return Map[string, int64](ctx, c, "versions", `
SELECT batch.name, CAST(SUM(version.n) AS BIGINT)
FROM batch JOIN version ON version.name = batch.name OR version.name = ''
GROUP BY batch.name`, Column("name", names))
}

// Invalidate changes every version to a number that it never had, so that all gateways empty
// their caches. It is needed after the database was restored to an earlier state, because
// later changes would reach the same numbers again.
func (d *DB) Invalidate(ctx context.Context) error {
	return d.Run(ctx, "versions", "INSERT INTO version (name, n) VALUES ('', $1) ON CONFLICT (name) DO UPDATE SET n = {greatest}(version.n + 1, excluded.n)", d.Now())
}
