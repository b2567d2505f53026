package usages

import (
	"context"
	"time"

	"github.com/penstock/penstock/relay/sqlstore"
	"github.com/penstock/penstock/relay/usage"
)

const deleteRows = `
DELETE FROM usage_report_row WHERE (report, subscriber, iccid) IN (
  SELECT report, subscriber, iccid FROM usage_report_row WHERE report = $1 LIMIT $2)`

// Begin makes an empty report.
func (s *Store) Begin(ctx context.Context, id string, at time.Time) error {
	if err := s.db.Run(ctx, "usage report "+id, sqlstore.Upsert("usage_report", "id", "begun"), id, at); err != nil {
		return err
	}
	return s.deleteRows(ctx, id)
}

// deleteRows deletes the rows of a report in portions, so that no transaction is
// long.
func (s *Store) deleteRows(ctx context.Context, id string) error {
	return s.db.Sweep(ctx, "usage report "+id, sqlstore.SweepMost, deleteRows, id)
}

// Add adds rows to a report.
func (s *Store) Add(ctx context.Context, id string, rows []usage.Row) error {
	b := sqlstore.BatchOf("iccid text, subscriber text, company text, bytes bigint", rows, fields)
	// Of several rows of one SIM this takes the last.
	return s.db.Run(ctx, "usage report "+id, `
INSERT INTO usage_report_row (report, subscriber, iccid, company, bytes)
SELECT $1, subscriber, iccid, company, bytes FROM batch WHERE n IN (SELECT MAX(n) FROM batch GROUP BY subscriber, iccid)
ON CONFLICT (report, subscriber, iccid) DO UPDATE SET company = excluded.company, bytes = excluded.bytes`, id, b)
}

// Rows returns a page of a report.
func (s *Store) Rows(ctx context.Context, id string, offset, limit int) ([]usage.Row, error) {
	return sqlstore.List(ctx, s.db, "usage report "+id, `
SELECT iccid, subscriber, company, bytes FROM usage_report_row
WHERE report = $1 ORDER BY subscriber, iccid LIMIT $2 OFFSET $3`, fields, id, limit, offset)
}

// fields are the columns of a row.
func fields(r *usage.Row) []any { return []any{&r.ICCID, &r.Subscriber, &r.Company, &r.Bytes} }

// Sweep removes reports that can no longer be read, usage.ReportLife after they
// were begun.
func (s *Store) Sweep(ctx context.Context, now time.Time) error {
	for {
		ids, err := sqlstore.Values[string](ctx, s.db, "usage reports", `
SELECT id FROM usage_report WHERE begun < $1 ORDER BY begun LIMIT 100`, now.Add(-usage.ReportLife))
		if err != nil {
			return err
		}
		deleted := int64(0)
		for _, id := range ids {
			if err := s.deleteRows(ctx, id); err != nil {
				return err
			}
			// One whose rows another gateway is deleting is left to the next sweep.
			n, err := s.db.Exec(ctx, "usage report "+id, `
DELETE FROM usage_report WHERE id = $1 AND NOT EXISTS (SELECT 1 FROM usage_report_row WHERE report = $1)`, id)
			if err != nil {
				return err
			}
			deleted += n
		}
		if deleted == 0 {
			return nil
		}
	}
}
