package usage

import (
	"context"
	"database/sql"
	"fmt"
	"time"

	"github.com/penstock/penstock/relay/account"
	"github.com/penstock/penstock/relay/usage"
)

// Any reports whether there are records in a time.
func (s *Store) Any(ctx context.Context, acct account.ID, in usage.Span, iccids []string) (bool, error) {
	from, to := in.From.UnixMicro(), in.To.UnixMicro()
	if iccids == nil {
		return s.truth(ctx, anyAll, int64(acct), from, to)
	}
	for _, iccid := range iccids {
		if found, err := s.truth(ctx, anySIM, int64(acct), iccid, from, to); found || err != nil {
			return found, err
		}
	}
	return false, nil
}

func (s *Store) truth(ctx context.Context, query string, args ...any) (found bool, err error) {
	if err = s.db.Read.QueryRowContext(ctx, query, args...).Scan(&found); err != nil {
		err = fmt.Errorf("usage: any: %w", err)
	}
	return found, err
}

// Read returns a page of records.
func (s *Store) Read(ctx context.Context, acct account.ID, iccid string, in usage.Span, behind usage.Place, limit int) ([]usage.Kept, error) {
	start, n := in.From.UnixMicro(), int64(0)
	if behind.N != 0 {
		start, n = behind.Start.UnixMicro(), behind.N
	}
	query, args := readAll, []any{int64(acct), in.To.UnixMicro(), start, n, limit}
	if iccid != "" {
		query, args = readSIM, []any{int64(acct), iccid, in.To.UnixMicro(), start, n, limit}
	}
	rows, err := s.db.Read.QueryContext(ctx, query, args...)
	if err != nil {
		return nil, fmt.Errorf("usage: read: %w", err)
	}
	defer func() { _ = rows.Close() }()
	return s.kept(rows, limit)
}

func (s *Store) kept(rows *sql.Rows, limit int) ([]usage.Kept, error) {
	found := make([]usage.Kept, 0, limit)
	for rows.Next() {
		var k usage.Kept
		var start int64
		var kind int
		if err := rows.Scan(&k.N, &k.Use.ICCID, &start, &kind, &k.Use.Bytes, &k.Use.Duration, &k.Use.ID); err != nil {
			return nil, fmt.Errorf("usage: read: %w", err)
		}
		if kind < 0 || kind >= len(s.types) {
			return nil, fmt.Errorf("usage: read: record %d has the type %d", k.N, kind)
		}
		k.Start = time.UnixMicro(start).UTC()
		k.Use.Start, k.Use.Type = k.Start, s.types[kind]
		found = append(found, k)
	}
	if err := rows.Err(); err != nil {
		return nil, fmt.Errorf("usage: read: %w", err)
	}
	return found, nil
}

// piece is how many sums are handed over at one time.
const piece = 500

// Sums adds up what each SIM used, sorted beside memory where it must be.
func (s *Store) Sums(ctx context.Context, acct account.ID, in usage.Span, each func([]usage.Sum) error) error {
	rows, err := s.db.Read.QueryContext(ctx, sums, int64(acct), in.From.UnixMicro(), in.To.UnixMicro())
	if err != nil {
		return fmt.Errorf("usage: sums: %w", err)
	}
	defer func() { _ = rows.Close() }()
	found := make([]usage.Sum, 0, piece)
	for rows.Next() {
		var one usage.Sum
		if err := rows.Scan(&one.ICCID, &one.Bytes); err != nil {
			return fmt.Errorf("usage: sums: %w", err)
		}
		if found = append(found, one); len(found) == piece {
			if err := each(found); err != nil {
				return err
			}
			found = found[:0]
		}
	}
	if err := rows.Err(); err != nil {
		return fmt.Errorf("usage: sums: %w", err)
	}
	if len(found) == 0 {
		return nil
	}
	return each(found)
}
