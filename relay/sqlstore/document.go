package sqlstore

import (
	"bytes"
	"context"
	"database/sql"
	"encoding/json"
	"errors"
	"fmt"

	"github.com/penstock/penstock/relay"
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
	return One(ctx, c, t.Noun+" "+id, "SELECT doc FROM "+t.Table+" WHERE account = $1 AND id = $2", ScanDoc[T], int64(acct), id)
}

// All loads every record of an account, by id.
func (t Documents[T]) All(ctx context.Context, c Conn, acct account.ID) ([]T, error) {
	return List(ctx, c, t.Noun+" list", "SELECT doc FROM "+t.Table+" WHERE account = $1 ORDER BY id", ScanDoc[T], int64(acct))
}

// Put saves a record, whether there was one or not.
func (t Documents[T]) Put(ctx context.Context, tx *Tx, acct account.ID, id string, v T) error {
	doc, err := Encode(v)
	if err != nil {
		return fmt.Errorf("%s %s: encode: %w", t.Noun, id, err)
	}
	_, err = tx.Exec(ctx, t.Noun+" "+id, "INSERT INTO "+t.Table+` (account, id, doc) VALUES ($1, $2, $3)
ON CONFLICT (account, id) DO UPDATE SET doc = excluded.doc`, int64(acct), id, doc)
	return err
}

// Change saves what change makes of a record, under its lock, and reports whether
// that is another one. It returns relay.KindNotFound if there is no record, and
// what change returned.
func (t Documents[T]) Change(ctx context.Context, tx *Tx, acct account.ID, id string, change func(*T) error) (v T, changed bool, err error) {
	was, err := Value[string](ctx, tx, t.Noun+" "+id, "SELECT doc FROM "+t.Table+" WHERE account = $1 AND id = $2 {for update}", int64(acct), id)
	if err != nil {
		return v, false, err
	}
	if err := json.Unmarshal([]byte(was), &v); err != nil {
		return v, false, fmt.Errorf("%s %s: decode: %w", t.Noun, id, err)
	}
	if err := change(&v); err != nil {
		return v, false, err
	}
	is, err := Encode(v)
	if err != nil {
		return v, false, fmt.Errorf("%s %s: encode: %w", t.Noun, id, err)
	}
	if is == was {
		return v, false, nil
	}
	_, err = tx.Exec(ctx, t.Noun+" "+id, "UPDATE "+t.Table+" SET doc = $1 WHERE account = $2 AND id = $3", is, int64(acct), id)
	return v, true, err
}

// Delete removes a record and reports whether there was one.
func (t Documents[T]) Delete(ctx context.Context, tx *Tx, acct account.ID, id string) (bool, error) {
	n, err := tx.Exec(ctx, t.Noun+" "+id, "DELETE FROM "+t.Table+" WHERE account = $1 AND id = $2", int64(acct), id)
	return n > 0, err
}

// ScanDoc reads a row of one column, the JSON of a record.
func ScanDoc[T any](row *sql.Rows, v *T) error {
	var doc []byte
	if err := row.Scan(&doc); err != nil {
		return err
	}
	return Decode(doc, v)
}

// Decode reads the JSON of a record.
func Decode(doc []byte, v any) error {
	if err := json.Unmarshal(doc, v); err != nil {
		return relay.Errorf(relay.KindUnexpected, "decode: %w", err)
	}
	return nil
}

// Encode is a record as JSON; <, > and & stand for themselves.
func Encode(v any) (string, error) {
	var b bytes.Buffer
	e := json.NewEncoder(&b)
	e.SetEscapeHTML(false)
	if err := e.Encode(v); err != nil {
		return "", err
	}
	return string(bytes.TrimSuffix(b.Bytes(), []byte("\n"))), nil
}

// Bump counts a version up, which others compare to notice a change.
func (t *Tx) Bump(ctx context.Context, name string) error {
	_, err := t.Exec(ctx, "version "+name, `INSERT INTO version (name, n) VALUES ($1, 1) ON CONFLICT (name) DO UPDATE SET n = version.n + 1`, name)
	return err
}

// Version is how often a version was counted up.
func Version(ctx context.Context, c Conn, name string) (int64, error) {
	n, err := Value[int64](ctx, c, "version "+name, "SELECT n FROM version WHERE name = $1", name)
	if relay.KindOf(err) == relay.KindNotFound {
		return 0, nil
	}
	return n, err
}

// Versions is Version for many names, in one round trip.
func Versions(ctx context.Context, c Conn, names []string) (map[string]int64, error) {
	b := NewBatch("name text")
	for _, name := range names {
		b.Add(name)
	}
	type row struct {
		name string
		n    int64
	}
	all, err := List(ctx, c, "versions", "SELECT version.name, version.n FROM version JOIN batch ON batch.name = version.name",
		func(r *sql.Rows, v *row) error { return r.Scan(&v.name, &v.n) }, b)
	out := make(map[string]int64, len(all))
	for _, one := range all {
		out[one.name] = one.n
	}
	return out, err
}

func scanPair(row *sql.Rows, v *[2]string) error { return row.Scan(&v[0], &v[1]) }

// IsNotFound reports whether an error says that there is no such record.
func IsNotFound(err error) bool {
	return errors.Is(err, sql.ErrNoRows) || relay.KindOf(err) == relay.KindNotFound
}
