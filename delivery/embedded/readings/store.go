package readings

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"path/filepath"
	"sync"
	"sync/atomic"

	"github.com/penstock/penstock/relay/sqlstore"
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
	damage      atomic.Pointer[error]

	mu    sync.Mutex // one batch at a time; guards what follows
	stmts *statements
	ids   *ids
}

// Open opens the database in a directory, and creates both if they are missing. It
// returns an error if the file is another kind of database or that of a newer version.
func Open(dir string, o Options) (*Store, error) {
	if o.Readers <= 0 {
		o.Readers = 4
	}
	s := &Store{ids: newIDs()}
	if err := s.open(filepath.Join(dir, File), o); err != nil {
		return nil, errors.Join(fmt.Errorf("readings: open %s: %w", File, sqlstore.AdviseDamage(err)), s.Close())
	}
	return s, nil
}

func (s *Store) open(path string, o Options) (err error) {
	if s.read, s.write, err = sqlstore.OpenSQLite(context.Background(), path, o.Readers); err != nil {
		return err
	}
	if err = migrate(context.Background(), s.write, schema()); err != nil {
		return err
	}
	s.stmts, err = prepare(s.write)
	return err
}

// Ping reports whether the database can be written to and nothing has found damage. A full disk shows at
// the next Write.
func (s *Store) Ping(ctx context.Context) error {
	if damage := s.damage.Load(); damage != nil {
		return *damage
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	tx, err := s.write.BeginTx(ctx, nil)
	if err != nil {
		return s.failed("ping", err)
	}
	_, err = tx.ExecContext(ctx, "DELETE FROM label WHERE id = -1")
	if err = errors.Join(err, tx.Rollback()); err != nil {
		return s.failed("ping", err)
	}
	return nil
}

// failed wraps an error with its operation, and records damage, which Ping then reports.
func (s *Store) failed(what string, err error) error {
	named := fmt.Errorf("readings: %s: %w", what, sqlstore.AdviseDamage(err))
	if sqlstore.Damaged(err) {
		s.damage.CompareAndSwap(nil, &named)
	}
	return named
}

// Close ends running operations and closes the file.
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
