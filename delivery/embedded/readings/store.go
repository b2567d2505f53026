package readings

import (
	"cmp"
	"context"
	"database/sql"
	"embed"
	"errors"
	"fmt"
	"path/filepath"
	"strings"
	"sync"
	"time"

	"github.com/penstock/penstock/relay/db"
)

// File is the name of the database within the directory.
const File = "readings.db"

// maxReaders is the largest number of concurrent queries.
const maxReaders = 4

// Store implements iot.ReadingStore on SQLite. It is safe for concurrent use.
type Store struct {
	write, read *sql.DB
	health      *db.Health

	mu       sync.Mutex // one batch at a time; guards the fields below
	ids      ids
	progress *db.Progress
}

// Open opens the database in a directory, and creates both if they are missing. commits is
// the file with the number of transactions, see db.Progress; empty means next to the
// database. Open returns an error if the file is another kind of database or has a newer
// version.
func Open(dir, commits string) (*Store, error) {
	s := &Store{}
	s.ids.clear()
	if err := s.open(filepath.Join(dir, File), commits); err != nil {
		return nil, errors.Join(fmt.Errorf("readings: open %s: %w", File, db.AdviseDamage(err)), s.Close())
	}
	return s, nil
}

func (s *Store) open(path, commits string) (err error) {
	if s.read, s.write, err = db.OpenSQLite(context.Background(), path, maxReaders); err != nil {
		return err
	}
	if s.health, err = db.NewHealth(path); err != nil {
		return err
	}
	if err = migrate(context.Background(), s.write, schema()); err != nil {
		return err
	}
	s.progress, err = db.OpenProgress(context.Background(), s.write, cmp.Or(commits, path+db.CommitsSuffix), time.Now)
	return err
}

// CheckIntegrity reads the whole database and returns an error if it is damaged. Later calls
// of Ping return the same error.
func (s *Store) CheckIntegrity(ctx context.Context) error {
	return s.health.CheckIntegrity(ctx, s.read)
}

// Damaged returns a channel that is closed when damage is found.
func (s *Store) Damaged() <-chan struct{} { return s.health.Damaged() }

// Progress returns the number of transactions and the positions of the journals.
func (s *Store) Progress() *db.Progress { return s.progress }

func (s *Store) commit(ctx context.Context, tx *sql.Tx) error {
	if err := s.progress.Record(ctx, tx); err != nil {
		return err
	}
	if err := tx.Commit(); err != nil {
		return err
	}
	s.progress.Committed()
	return nil
}

// Ping returns an error if the database cannot be written to, is damaged, or its file was
// removed. It does not notice a full disk, which the next Write reports.
func (s *Store) Ping(ctx context.Context) error {
	if err := s.health.Check(); err != nil {
		return fmt.Errorf("readings: %w", err)
	}
	s.mu.Lock()
	defer s.mu.Unlock()
	tx, err := s.write.BeginTx(ctx, nil)
	if err != nil {
		return s.wrapError("ping", err)
	}
	_, err = tx.ExecContext(ctx, "DELETE FROM label WHERE id = -1")
	if err = errors.Join(err, tx.Rollback()); err != nil {
		return s.wrapError("ping", err)
	}
	return nil
}

func (s *Store) eachRow(ctx context.Context, scan func(*sql.Rows) error, query string, args ...any) error {
	rows, err := s.read.QueryContext(ctx, query, args...)
	if err != nil {
		return err
	}
	defer func() { _ = rows.Close() }()
	for rows.Next() {
		if err := scan(rows); err != nil {
			return err
		}
	}
	return rows.Err()
}

func appendList(args []any, values []string) (string, []any) {
	for _, v := range values {
		args = append(args, v)
	}
	return "(?" + strings.Repeat(", ?", len(values)-1) + ")", args
}

// wrapError adds the operation to an error, and records damage, which Ping then reports.
func (s *Store) wrapError(op string, err error) error {
	opErr := fmt.Errorf("readings: %s: %w", op, db.AdviseDamage(err))
	if db.IsDamaged(err) {
		s.health.Note(opErr)
	}
	return opErr
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
	if s.progress != nil {
		errs = append(errs, s.progress.Close())
	}
	if err := errors.Join(errs...); err != nil {
		return fmt.Errorf("readings: close: %w", err)
	}
	return nil
}

//go:embed schema/*.sql
var schemaFiles embed.FS

// schema returns the steps to the newest version of the tables. Version n is the result of
// the first n steps.
func schema() (steps []string) {
	files, _ := schemaFiles.ReadDir("schema") // the files are embedded, in the order of their names
	for _, file := range files {
		step, _ := schemaFiles.ReadFile("schema/" + file.Name())
		steps = append(steps, string(step))
	}
	return steps
}

// applicationID marks the file as a store of readings ("PsRd").
const applicationID = 0x50735264

func migrate(ctx context.Context, db *sql.DB, steps []string) error {
	tx, err := db.BeginTx(ctx, nil)
	if err != nil {
		return err
	}
	defer func() { _ = tx.Rollback() }()
	version, err := version(ctx, tx)
	switch {
	case err != nil:
		return err
	case version > len(steps):
		return fmt.Errorf("schema version %d: this program supports %d; use a newer one", version, len(steps))
	case version == len(steps):
		return nil
	}
	for _, step := range steps[version:] {
		if _, err := tx.ExecContext(ctx, step); err != nil {
			return fmt.Errorf("schema: %w", err)
		}
	}
	// A pragma cannot have parameters.
	if _, err := tx.ExecContext(ctx, fmt.Sprintf("PRAGMA application_id = %d; PRAGMA user_version = %d", applicationID, len(steps))); err != nil {
		return err
	}
	return tx.Commit()
}

// version returns the version of the tables: 0 in a new file.
func version(ctx context.Context, tx *sql.Tx) (int, error) {
	var id, version, tables int
	err := errors.Join(
		tx.QueryRowContext(ctx, "PRAGMA application_id").Scan(&id),
		tx.QueryRowContext(ctx, "PRAGMA user_version").Scan(&version),
		tx.QueryRowContext(ctx, "SELECT count(*) FROM sqlite_schema").Scan(&tables),
	)
	if err == nil && id != applicationID && (tables > 0 || version > 0) {
		err = errors.New("the file belongs to another program")
	}
	return version, err
}
