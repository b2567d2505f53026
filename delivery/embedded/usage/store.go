package usage

import (
	"context"
	"database/sql"
	"errors"
	"fmt"
	"slices"

	"github.com/penstock/penstock/decoders/cdr"
	"github.com/penstock/penstock/delivery/embedded/database"
	"github.com/penstock/penstock/relay"
	"github.com/penstock/penstock/relay/account"
	"github.com/penstock/penstock/relay/usage"
)

// Store may be used by several goroutines at once.
type Store struct {
	db    *database.DB
	types []string
}

// Open opens the database in a directory and makes what is missing of both.
func Open(ctx context.Context, dir string) (*Store, error) {
	db, err := database.Open(ctx, dir, database.Spec{File: File, Version: version, Schema: schema, Readers: 4})
	if err != nil {
		return nil, fmt.Errorf("usage: %w", err)
	}
	return &Store{db: db, types: cdr.Types()}, nil
}

// Put keeps records durably and counts those that are new, all or none.
func (s *Store) Put(ctx context.Context, records []usage.Record) error {
	if len(records) == 0 {
		return nil
	}
	err := s.db.Change(ctx, func(tx *sql.Tx) error {
		added, err := s.insert(ctx, tx, records)
		if err != nil {
			return err
		}
		return count(ctx, tx, added)
	})
	if err != nil {
		// What a record may hold was checked when it was read: it is the disk.
		return relay.Errorf(relay.KindUnavailable, "usage: put: %w", err)
	}
	return nil
}

// counter names a total.
type counter struct {
	account account.ID
	usage.Subject
}

// insert keeps records and returns what the new ones add to totals.
func (s *Store) insert(ctx context.Context, tx *sql.Tx, records []usage.Record) (map[counter]int64, error) {
	stmt, err := tx.PrepareContext(ctx, insert)
	if err != nil {
		return nil, err
	}
	defer func() { _ = stmt.Close() }()
	added := make(map[counter]int64)
	for _, r := range records {
		u := r.Use
		done, err := stmt.ExecContext(ctx, int64(r.Account), u.ICCID, u.Start.UnixMicro(), slices.Index(s.types, u.Type), u.Bytes, u.Duration, u.ID)
		if err != nil {
			return nil, err
		}
		if n, err := done.RowsAffected(); err != nil || n == 0 {
			if err != nil {
				return nil, err
			}
			continue // it is there
		}
		month := usage.MonthOf(u.Start)
		added[counter{r.Account, usage.Subject{Scope: usage.OfSIM, ID: u.ICCID, Month: month}}] += u.Bytes
		if r.Pool != "" {
			added[counter{r.Account, usage.Subject{Scope: usage.OfPool, ID: r.Pool, Month: month}}] += u.Bytes
		}
	}
	return added, nil
}

// count adds to totals.
func count(ctx context.Context, tx *sql.Tx, added map[counter]int64) error {
	stmt, err := tx.PrepareContext(ctx, add)
	if err != nil {
		return err
	}
	defer func() { _ = stmt.Close() }()
	for c, bytes := range added {
		if _, err := stmt.ExecContext(ctx, int64(c.account), int(c.Month), string(c.Scope), c.ID, bytes); err != nil {
			return err
		}
	}
	return nil
}

// Totals returns what subjects used and what was done about it.
func (s *Store) Totals(ctx context.Context, acct account.ID, subjects []usage.Subject) ([]usage.Total, error) {
	out := make([]usage.Total, len(subjects))
	for i, one := range subjects {
		err := s.db.Read.QueryRowContext(ctx, readTotal, int64(acct), int(one.Month), string(one.Scope), one.ID).Scan(&out[i].Bytes, &out[i].Done)
		if err != nil && !errors.Is(err, sql.ErrNoRows) {
			return nil, relay.Errorf(relay.KindUnavailable, "usage: total of %s %s: %w", one.Scope, one.ID, err)
		}
	}
	return out, nil
}

// Did notes what was done about a subject.
func (s *Store) Did(ctx context.Context, acct account.ID, one usage.Subject, steps usage.Steps) error {
	if _, err := s.db.Write.ExecContext(ctx, markDone, int64(acct), int(one.Month), string(one.Scope), one.ID, int(steps)); err != nil {
		return relay.Errorf(relay.KindUnavailable, "usage: note about %s %s: %w", one.Scope, one.ID, err)
	}
	return nil
}

// Check reports whether the database can be written to.
func (s *Store) Check(ctx context.Context) error {
	if _, err := s.db.Write.ExecContext(ctx, "DELETE FROM report WHERE id = ''"); err != nil {
		return fmt.Errorf("usage: %w", err)
	}
	return nil
}

// Close ends what is running and closes the file.
func (s *Store) Close() error { return s.db.Close() }
