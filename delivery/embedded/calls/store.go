package calls

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"net/url"
	"os"
	"path/filepath"
	"time"

	_ "modernc.org/sqlite" // the driver "sqlite"

	"github.com/penstock/penstock/decoders/cdr"
	"github.com/penstock/penstock/relay"
	"github.com/penstock/penstock/relay/account"
	"github.com/penstock/penstock/relay/sip"
)

// File is the name of the database within the directory.
const File = "calls.db"

// version is that of the schema; a database of a newer one is refused.
const version = 1

// schema is version 1. Times are milliseconds since 1970, 0 for none.
const schema = `
CREATE TABLE IF NOT EXISTS call (
  account INTEGER NOT NULL, key TEXT NOT NULL, start INTEGER NOT NULL, answer INTEGER NOT NULL, end INTEGER NOT NULL,
  id TEXT NOT NULL, caller TEXT NOT NULL, callee TEXT NOT NULL, duration INTEGER NOT NULL, billsec INTEGER NOT NULL,
  disposition TEXT NOT NULL, trunk TEXT NOT NULL,
  PRIMARY KEY (account, key)
) WITHOUT ROWID;
CREATE INDEX IF NOT EXISTS call_start ON call (account, start, key);`

const (
	insert = `INSERT INTO call VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?) ON CONFLICT (account, key) DO NOTHING`
	read   = `SELECT key, start, answer, end, id, caller, callee, duration, billsec, disposition, trunk FROM call
WHERE account = ? AND start < ? AND (start, key) > (?, ?) ORDER BY start, key LIMIT ?`
)

// Store is a sip.Calls. It may be used by several goroutines at once.
type Store struct{ write, read *sql.DB }

// Open opens the database in a directory and makes what is missing of both.
func Open(ctx context.Context, dir string) (*Store, error) {
	path, err := file(dir)
	if err != nil {
		return nil, fmt.Errorf("calls: %w", err)
	}
	s := &Store{}
	if err := s.open(ctx, path); err != nil {
		return nil, errors.Join(fmt.Errorf("calls: open %s: %w", File, err), s.Close())
	}
	return s, nil
}

// file makes the directory and an empty database that only the owner can read.
func file(dir string) (string, error) {
	path, err := filepath.Abs(filepath.Join(dir, File))
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

func (s *Store) open(ctx context.Context, path string) (err error) {
	if s.write, err = sql.Open("sqlite", dsn(path, "immediate", "journal_mode(WAL)", "synchronous(FULL)",
		"wal_autocheckpoint(4000)", "journal_size_limit(67108864)", "cache_size(-32768)")); err != nil {
		return err
	}
	s.write.SetMaxOpenConns(1)
	var is int
	if err = s.write.QueryRowContext(ctx, "PRAGMA user_version").Scan(&is); err != nil {
		return err
	}
	if is > version {
		return fmt.Errorf("it was made by a newer version (%d)", is)
	}
	if _, err = s.write.ExecContext(ctx, schema+fmt.Sprintf("PRAGMA user_version = %d", version)); err != nil {
		return err
	}
	if s.read, err = sql.Open("sqlite", dsn(path, "deferred", "query_only(1)", "cache_size(-4096)")); err != nil {
		return err
	}
	s.read.SetMaxOpenConns(2)
	return nil
}

// dsn names the file as an address, so that no character in its path means
// anything, with the pragmas of each connection.
func dsn(path, lock string, pragmas ...string) string {
	query := url.Values{"_txlock": {lock}, "_pragma": append([]string{"busy_timeout(10000)"}, pragmas...)}
	return (&url.URL{Scheme: "file", Path: path, RawQuery: query.Encode()}).String()
}

// Put keeps records durably, all or none.
func (s *Store) Put(ctx context.Context, records []sip.Record) error {
	if len(records) == 0 {
		return nil
	}
	if err := s.put(ctx, records); err != nil {
		// What a record may hold was checked when it was read: it is the disk.
		return relay.Errorf(relay.KindUnavailable, "calls: put: %w", err)
	}
	return nil
}

func (s *Store) put(ctx context.Context, records []sip.Record) error {
	tx, err := s.write.BeginTx(ctx, nil)
	if err != nil {
		return err
	}
	defer func() { _ = tx.Rollback() }() // does nothing after a commit
	stmt, err := tx.PrepareContext(ctx, insert)
	if err != nil {
		return err
	}
	defer func() { _ = stmt.Close() }()
	for _, r := range records {
		c := r.Call
		if _, err := stmt.ExecContext(ctx, int64(r.Account), c.Key, millis(c.Start), millis(c.Answer), millis(c.End),
			c.ID, c.From, c.To, c.Duration, c.Billsec, c.Disposition, c.Trunk); err != nil {
			return err
		}
	}
	return tx.Commit()
}

func millis(t time.Time) int64 {
	if t.IsZero() {
		return 0
	}
	return t.UnixMilli()
}

func moment(ms int64) time.Time {
	if ms == 0 {
		return time.Time{}
	}
	return time.UnixMilli(ms).UTC()
}

// Read returns a page of calls.
func (s *Store) Read(ctx context.Context, acct account.ID, from, to time.Time, behind sip.Place, limit int) ([]cdr.Call, error) {
	start, key := from.UnixMilli(), ""
	if behind.Key != "" {
		start, key = behind.Start.UnixMilli(), behind.Key
	}
	rows, err := s.read.QueryContext(ctx, read, int64(acct), to.UnixMilli(), start, key, limit)
	if err != nil {
		return nil, fmt.Errorf("calls: read: %w", err)
	}
	defer func() { _ = rows.Close() }()
	calls := make([]cdr.Call, 0, limit)
	for rows.Next() {
		var c cdr.Call
		var begun, answered, ended int64
		if err := rows.Scan(&c.Key, &begun, &answered, &ended, &c.ID, &c.From, &c.To, &c.Duration, &c.Billsec, &c.Disposition, &c.Trunk); err != nil {
			return nil, fmt.Errorf("calls: read: %w", err)
		}
		c.Start, c.Answer, c.End = moment(begun), moment(answered), moment(ended)
		calls = append(calls, c)
	}
	if err := rows.Err(); err != nil {
		return nil, fmt.Errorf("calls: read: %w", err)
	}
	return calls, nil
}

// Check reports whether the database can be written to.
func (s *Store) Check(ctx context.Context) error {
	if _, err := s.write.ExecContext(ctx, "DELETE FROM call WHERE account = -1"); err != nil {
		return fmt.Errorf("calls: %w", err)
	}
	return nil
}

// Close ends what is running and closes the file.
func (s *Store) Close() error {
	var errs []error
	for _, db := range []*sql.DB{s.read, s.write} {
		if db != nil {
			errs = append(errs, db.Close())
		}
	}
	return errors.Join(errs...)
}
