package database

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"net/url"
	"os"
	"path/filepath"

	_ "modernc.org/sqlite" // the driver "sqlite"
)

// Spec says what a database is like.
type Spec struct {
	File string // its name within the directory
	// Version is that of the schema.
	Version int
	Schema  string // makes what is missing
	// Readers is how many reads may run at one time.
	Readers int
}

// DB is an open database.
type DB struct {
	Write *sql.DB // one connection, whose transactions begin with the lock
	Read  *sql.DB
}

// Open opens the database in a directory and makes what is missing of both.
func Open(ctx context.Context, dir string, s Spec) (*DB, error) {
	path, err := file(dir, s.File)
	if err != nil {
		return nil, err
	}
	d := &DB{}
	if err := d.open(ctx, path, s); err != nil {
		return nil, errors.Join(fmt.Errorf("open %s: %w", s.File, err), d.Close())
	}
	return d, nil
}

// file makes the directory and an empty database that only the owner can read.
func file(dir, name string) (string, error) {
	path, err := filepath.Abs(filepath.Join(dir, name))
	if err != nil {
		return "", err
	}
	if err := os.MkdirAll(filepath.Dir(path), 0o700); err != nil {
		return "", err
	}
	f, err := os.OpenFile(path, os.O_CREATE|os.O_RDWR, 0o600)
	if err != nil {
		return "", err
	}
	return path, f.Close()
}

func (d *DB) open(ctx context.Context, path string, s Spec) (err error) {
	if d.Write, err = sql.Open("sqlite", dsn(path, "immediate", "journal_mode(WAL)", "synchronous(FULL)",
		"wal_autocheckpoint(4000)", "journal_size_limit(67108864)", "cache_size(-32768)")); err != nil {
		return err
	}
	d.Write.SetMaxOpenConns(1)
	var is int
	if err = d.Write.QueryRowContext(ctx, "PRAGMA user_version").Scan(&is); err != nil {
		return err
	}
	if is > s.Version {
		return fmt.Errorf("it was made by a newer version (%d)", is)
	}
	if _, err = d.Write.ExecContext(ctx, s.Schema+fmt.Sprintf("PRAGMA user_version = %d", s.Version)); err != nil {
		return err
	}
	if d.Read, err = sql.Open("sqlite", dsn(path, "deferred", "query_only(1)", "cache_size(-4096)")); err != nil {
		return err
	}
	d.Read.SetMaxOpenConns(s.Readers)
	return nil
}

// dsn names the file as an address, so that no character in its path means
// anything, with the pragmas of each connection.
func dsn(path, lock string, pragmas ...string) string {
	query := url.Values{"_txlock": {lock}, "_pragma": append([]string{"busy_timeout(10000)"}, pragmas...)}
	return (&url.URL{Scheme: "file", Path: path, RawQuery: query.Encode()}).String()
}

// Change runs a transaction: what do did is durable when Change returns nil, and
// undone otherwise.
func (d *DB) Change(ctx context.Context, do func(tx *sql.Tx) error) error {
	tx, err := d.Write.BeginTx(ctx, nil)
	if err != nil {
		return err
	}
	defer func() { _ = tx.Rollback() }() // does nothing after a commit
	if err := do(tx); err != nil {
		return err
	}
	return tx.Commit()
}

// Close ends what is running and closes the file.
func (d *DB) Close() error {
	var errs []error
	for _, db := range []*sql.DB{d.Read, d.Write} {
		if db != nil {
			errs = append(errs, db.Close())
		}
	}
	return errors.Join(errs...)
}
