package sqlstore

import (
	"context"

	"github.com/penstock/penstock/relay/account"
)

// Documents are records that are read and written whole, as JSON, in a table of
// the columns account BIGINT, id TEXT and doc TEXT whose primary key is (account,
// id). What belongs to no account has account 0.
type Documents[T any] struct {
	Noun  string // of one record, for errors
	Table string
}

// Get loads a record; relay.KindNotFound if there is none.
func (t Documents[T]) Get(ctx context.Context, c Conn, acct account.ID, id string) (T, error) {
	return One(ctx, c, t.Noun+" "+id, "SELECT doc FROM "+t.Table+" WHERE account = $1 AND id = $2", Doc[T], acct, id)
}

// All loads every record of an account, by id.
func (t Documents[T]) All(ctx context.Context, c Conn, acct account.ID) ([]T, error) {
	return List(ctx, c, t.Noun+" list", "SELECT doc FROM "+t.Table+" WHERE account = $1 ORDER BY id", Doc[T], acct)
}

// Put saves a record, whether there was one or not.
func (t Documents[T]) Put(ctx context.Context, x Executor, acct account.ID, id string, v T) error {
	return x.Run(ctx, t.Noun+" "+id, "INSERT INTO "+t.Table+` (account, id, doc) VALUES ($1, $2, $3)
ON CONFLICT (account, id) DO UPDATE SET doc = excluded.doc`, acct, id, JSON(v))
}

// Change saves what change makes of a record, under its lock, and reports whether
// that is another one. It returns relay.KindNotFound if there is no record, and
// what change returned.
func (t Documents[T]) Change(ctx context.Context, tx *Tx, acct account.ID, id string, change func(*T) error) (v T, changed bool, err error) {
	noun := t.Noun + " " + id
	was, err := Value[string](ctx, tx, noun, "SELECT doc FROM "+t.Table+" WHERE account = $1 AND id = $2 {for update}", acct, id)
	if err != nil {
		return v, false, err
	}
	v, is, err := Edit(noun, was, change)
	if err != nil || is == was {
		return v, false, err
	}
	return v, true, tx.Run(ctx, noun, "UPDATE "+t.Table+" SET doc = $1 WHERE account = $2 AND id = $3", is, acct, id)
}

// Edit returns what edit makes of a record, and its JSON; an error of edit as it
// is.
func Edit[T any](noun, was string, edit func(*T) error) (v T, is string, err error) {
	if err := Decode([]byte(was), &v); err != nil {
		return v, "", Wrap(noun, err)
	}
	if err := edit(&v); err != nil {
		return v, "", err
	}
	is, err = Encode(v)
	return v, is, Wrap(noun, err)
}

// Delete removes a record; relay.KindNotFound if there is none.
func (t Documents[T]) Delete(ctx context.Context, x Executor, acct account.ID, id string) error {
	return MustChange(ctx, x, t.Noun+" "+id, "DELETE FROM "+t.Table+" WHERE account = $1 AND id = $2", acct, id)
}

// Bump counts a version up, which others compare to notice a change.
func (t *Tx) Bump(ctx context.Context, name string) error {
	return t.Run(ctx, "version "+name, `INSERT INTO version (name, n) VALUES ($1, 1) ON CONFLICT (name) DO UPDATE SET n = version.n + 1`, name)
}

// Version is how often a version was counted up.
func Version(ctx context.Context, c Conn, name string) (int64, error) {
	return OrZero(Value[int64](ctx, c, "version "+name, "SELECT n FROM version WHERE name = $1", name))
}

// Versions is Version for many names, in one round trip.
func Versions(ctx context.Context, c Conn, names []string) (map[string]int64, error) {
	return Map[string, int64](ctx, c, "versions",
		"SELECT version.name, version.n FROM version JOIN batch ON batch.name = version.name", Column("name text", names))
}
