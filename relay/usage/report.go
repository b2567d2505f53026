package usage

import (
	"context"
	"time"

	"github.com/penstock/penstock/relay/db"
)

// Begin creates an empty report. It deletes the rows of an existing report with that id.
func (s *Store) Begin(ctx context.Context, id string, now time.Time) error {
	const statement = `
		INSERT INTO usage_report (id, begun)
		VALUES ($1, $2)
		ON CONFLICT (id) DO UPDATE
		SET begun = excluded.begun`
	if err := s.db.Run(ctx, "usage report "+id, statement, id, now); err != nil {
		return err
	}
	return s.deleteRows(ctx, id)
}

// deleteRows deletes the rows of a report in batches to avoid long transactions.
func (s *Store) deleteRows(ctx context.Context, id string) error {
	const statement = `
		DELETE FROM usage_report_row
		WHERE (report, subscriber, iccid) IN (
		  SELECT report, subscriber, iccid
		  FROM usage_report_row
		  WHERE report = $1
		  LIMIT $2
		)`
	return s.db.Sweep(ctx, "usage report "+id, db.MaxSweep, statement, id)
}

// Add adds rows to a report. Among rows with the same SIM and subscriber, Add keeps the last row.
func (s *Store) Add(ctx context.Context, id string, rows []Row) error {
	const statement = `
		INSERT INTO usage_report_row (report, subscriber, iccid, company, bytes)
		SELECT $1, subscriber, iccid, company, bytes
		FROM batch
		WHERE n IN (SELECT MAX(n) FROM batch GROUP BY subscriber, iccid)
		ON CONFLICT (report, subscriber, iccid) DO UPDATE
		SET company = excluded.company,
		  bytes = excluded.bytes`
	return s.db.Run(ctx, "usage report "+id, statement, id, db.BatchOf("iccid, subscriber, company, bytes", rows, rowFields))
}

// Rows returns a page of a report, ordered by subscriber and SIM.
func (s *Store) Rows(ctx context.Context, id string, offset, limit int) ([]Row, error) {
	const statement = `
		SELECT iccid, subscriber, company, bytes
		FROM usage_report_row
		WHERE report = $1
		ORDER BY subscriber, iccid
		LIMIT $2
		OFFSET $3`
	return db.List(ctx, s.db, "usage report "+id, statement, rowFields, id, limit, offset)
}

// rowFields returns pointers to the fields of r in the order of the columns: iccid,
// subscriber, company, bytes.
func rowFields(r *Row) []any { return []any{&r.ICCID, &r.Subscriber, &r.Company, &r.Bytes} }

// Sweep deletes the reports that were begun more than ReportLifetime ago.
func (s *Store) Sweep(ctx context.Context, now time.Time) error {
	const selectExpired = `
		SELECT id
		FROM usage_report
		WHERE begun < $1
		ORDER BY begun
		LIMIT 100`
	// If another gateway is deleting rows of the report, the next sweep deletes the report.
	const deleteReport = `
		DELETE FROM usage_report
		WHERE id = $1
		  AND NOT EXISTS (SELECT 1 FROM usage_report_row WHERE report = $1)`
	for {
		ids, err := db.Values[string](ctx, s.db, "usage reports", selectExpired, now.Add(-ReportLifetime))
		if err != nil {
			return err
		}
		deleted := int64(0)
		for _, id := range ids {
			if err := s.deleteRows(ctx, id); err != nil {
				return err
			}
			n, err := s.db.Exec(ctx, "usage report "+id, deleteReport, id)
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
