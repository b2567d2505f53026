package calls

import (
	"context"
	"database/sql"
	"fmt"
	"time"

	"github.com/penstock/penstock/decoders/cdr"
	"github.com/penstock/penstock/delivery/embedded/database"
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
type Store struct{ db *database.DB }

// Open opens the database in a directory and makes what is missing of both.
func Open(ctx context.Context, dir string) (*Store, error) {
	db, err := database.Open(ctx, dir, database.Spec{File: File, Version: version, Schema: schema, Readers: 2})
	if err != nil {
		return nil, fmt.Errorf("calls: %w", err)
	}
	return &Store{db: db}, nil
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
	return s.db.Change(ctx, func(tx *sql.Tx) error {
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
		return nil
	})
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
	rows, err := s.db.Read.QueryContext(ctx, read, int64(acct), to.UnixMilli(), start, key, limit)
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
	if _, err := s.db.Write.ExecContext(ctx, "DELETE FROM call WHERE account = -1"); err != nil {
		return fmt.Errorf("calls: %w", err)
	}
	return nil
}

// Close ends what is running and closes the file.
func (s *Store) Close() error { return s.db.Close() }
