package readings

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"net/url"
	"os"
	"path/filepath"
	"sync"

	_ "modernc.org/sqlite" // the driver "sqlite"
)

// File is the name of the database within the directory.
const File = "readings.db"

// Options tunes a store; the zero value works.
type Options struct {
	// Readers is how many queries run at the same time; 0 means 4.
	Readers int
}

// Store is an iot.ReadingStore on SQLite. It may be used by several goroutines
// at once.
type Store struct {
	write, read *sql.DB

	mu    sync.Mutex // one batch at a time; guards what follows
	stmts *statements
	ids   *ids
}

// Open opens the database in a directory and makes what is missing of both. It
// returns an error if the file is no database of this kind or was made by a
// newer version.
func Open(dir string, o Options) (*Store, error) {
	if o.Readers <= 0 {
		o.Readers = 4
	}
	path, err := file(dir)
	if err != nil {
		return nil, fmt.Errorf("readings: %w", err)
	}
	s := &Store{ids: newIDs()}
	if err := s.open(path, o); err != nil {
		return nil, errors.Join(fmt.Errorf("readings: open %s: %w", File, err), s.Close())
	}
	return s, nil
}

// file makes the directory and an empty database that only the owner can read;
// SQLite gives its other files the same mode.
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

func (s *Store) open(path string, o Options) error {
	var err error
	if s.write, err = sql.Open("sqlite", dsn(path, "immediate", "journal_mode(WAL)", "synchronous(FULL)",
		"foreign_keys(1)", "wal_autocheckpoint(4000)", "journal_size_limit(67108864)", "cache_size(-32768)")); err != nil {
		return err
	}
	s.write.SetMaxOpenConns(1)
	if err = migrate(context.Background(), s.write, schema()); err != nil {
		return err
	}
	if s.read, err = sql.Open("sqlite", dsn(path, "deferred", "query_only(1)")); err != nil {
		return err
	}
	s.read.SetMaxOpenConns(o.Readers)
	s.read.SetMaxIdleConns(o.Readers)
	s.stmts, err = prepare(s.write)
	return err
}

// dsn names the file as an address, so that no character in its path means
// anything, with the pragmas of each connection.
func dsn(path, lock string, pragmas ...string) string {
	query := url.Values{"_txlock": {lock}, "_pragma": append([]string{"busy_timeout(10000)"}, pragmas...)}
	return (&url.URL{Scheme: "file", Path: path, RawQuery: query.Encode()}).String()
}

// Ping reports whether the database can be written to. A full disk shows at
// the next Write.
func (s *Store) Ping(ctx context.Context) error {
	s.mu.Lock()
	defer s.mu.Unlock()
	tx, err := s.write.BeginTx(ctx, nil)
	if err != nil {
		return fmt.Errorf("readings: ping: %w", err)
	}
	_, err = tx.ExecContext(ctx, "DELETE FROM label WHERE id = -1")
	if err = errors.Join(err, tx.Rollback()); err != nil {
		return fmt.Errorf("readings: ping: %w", err)
	}
	return nil
}

// Close ends what is running and closes the file.
func (s *Store) Close() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	var errs []error
	for _, db := range []*sql.DB{s.read, s.write} {
		if db != nil {
			errs = append(errs, db.Close())
		}
	}
	if err := errors.Join(errs...); err != nil {
		return fmt.Errorf("readings: close: %w", err)
	}
	return nil
}
