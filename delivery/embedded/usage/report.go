package usage

import (
	"context"
	"database/sql"
	"fmt"
	"time"

	"github.com/penstock/penstock/relay/usage"
)

// Begin makes an empty report.
func (s *Store) Begin(ctx context.Context, id string, at time.Time) error {
	if err := s.clear(ctx, id); err != nil {
		return err
	}
	const begin = `INSERT INTO report (id, begun) VALUES (?, ?) ON CONFLICT (id) DO NOTHING`
	if _, err := s.db.Write.ExecContext(ctx, begin, id, at.UnixMicro()); err != nil {
		return fmt.Errorf("usage: report %s: begin: %w", id, err)
	}
	return nil
}

// clear removes the rows of a report.
func (s *Store) clear(ctx context.Context, id string) error {
	for {
		done, err := s.db.Write.ExecContext(ctx, clearRows, id)
		if err != nil {
			return fmt.Errorf("usage: report %s: clear: %w", id, err)
		}
		if n, err := done.RowsAffected(); err != nil || n == 0 {
			return err
		}
	}
}

// Add adds rows to a report.
func (s *Store) Add(ctx context.Context, id string, rows []usage.Row) error {
	err := s.db.Change(ctx, func(tx *sql.Tx) error {
		stmt, err := tx.PrepareContext(ctx, addRow)
		if err != nil {
			return err
		}
		defer func() { _ = stmt.Close() }()
		for _, r := range rows {
			if _, err := stmt.ExecContext(ctx, id, r.Subscriber, r.ICCID, r.Company, r.Bytes); err != nil {
				return err
			}
		}
		return nil
	})
	if err != nil {
		return fmt.Errorf("usage: report %s: add: %w", id, err)
	}
	return nil
}

// Rows returns a page of a report.
func (s *Store) Rows(ctx context.Context, id string, offset, limit int) ([]usage.Row, error) {
	rows, err := s.db.Read.QueryContext(ctx, readRows, id, limit, offset)
	if err != nil {
		return nil, fmt.Errorf("usage: report %s: %w", id, err)
	}
	defer func() { _ = rows.Close() }()
	var out []usage.Row
	for rows.Next() {
		var r usage.Row
		if err := rows.Scan(&r.ICCID, &r.Subscriber, &r.Company, &r.Bytes); err != nil {
			return nil, fmt.Errorf("usage: report %s: %w", id, err)
		}
		out = append(out, r)
	}
	if err := rows.Err(); err != nil {
		return nil, fmt.Errorf("usage: report %s: %w", id, err)
	}
	return out, nil
}

// Sweep removes reports that were begun before a time.
func (s *Store) Sweep(ctx context.Context, before time.Time) error {
	rows, err := s.db.Read.QueryContext(ctx, `SELECT id FROM report WHERE begun < ?`, before.UnixMicro())
	if err != nil {
		return fmt.Errorf("usage: reports: %w", err)
	}
	defer func() { _ = rows.Close() }()
	var ids []string
	for rows.Next() {
		var id string
		if err := rows.Scan(&id); err != nil {
			return fmt.Errorf("usage: reports: %w", err)
		}
		ids = append(ids, id)
	}
	if err := rows.Err(); err != nil {
		return fmt.Errorf("usage: reports: %w", err)
	}
	for _, id := range ids {
		if err := s.clear(ctx, id); err != nil {
			return err
		}
		if _, err := s.db.Write.ExecContext(ctx, `DELETE FROM report WHERE id = ?`, id); err != nil {
			return fmt.Errorf("usage: report %s: remove: %w", id, err)
		}
	}
	return nil
}
