package usage

import (
	"context"
	"database/sql"
	"fmt"
	"time"

	"github.com/penstock/penstock/relay"
	"github.com/penstock/penstock/relay/db"
	"github.com/penstock/penstock/relay/sim"
)

const (
	anyRecord = `
SELECT n FROM usage_record WHERE account = $1 AND started >= $2 AND started < $3 LIMIT 1`

	anyOfSIMs = `
SELECT usage_record.n FROM batch CROSS JOIN usage_record
WHERE usage_record.account = batch.account AND usage_record.iccid = batch.iccid
  AND usage_record.started >= $1 AND usage_record.started < $2
LIMIT 1`

	readAll = `
SELECT n, iccid, started, type, bytes, duration, id FROM usage_record
WHERE account = $1 AND started < $2 AND (started, n) > ($3, $4)
ORDER BY started, n LIMIT $5`

	readSIM = `
SELECT n, iccid, started, type, bytes, duration, id FROM usage_record
WHERE account = $1 AND iccid = $6 AND started < $2 AND (started, n) > ($3, $4)
ORDER BY started, n LIMIT $5`

	// sumSIMs adds up the records of the next SIMs that have any in some months: null
	// for one that has none within the time.
	sumSIMs = `
SELECT sims.subject, (
  SELECT CAST(SUM(bytes) AS BIGINT) FROM usage_record
  WHERE account = $1 AND iccid = sims.subject AND started >= $6 AND started < $7)
FROM (
  SELECT DISTINCT subject FROM usage_total
  WHERE account = $1 AND scope = 'sim' AND subject > $2 AND month >= $3 AND month <= $4
  ORDER BY subject LIMIT $5
) AS sims
ORDER BY sims.subject`
)

// Any reports whether there are records in a time.
func (s *Store) Any(ctx context.Context, acct relay.AccountID, in Span, iccids []sim.ICCID) (bool, error) {
	from, to := in.From.UnixMicro(), in.To.UnixMicro()
	query, args := anyRecord, []any{acct, from, to}
	if iccids != nil {
		query, args = anyOfSIMs, []any{from, to, db.AccountColumn(acct, "iccid", iccids)}
	}
	found, err := db.Values[int64](ctx, s.db, "usage records", query, args...)
	return len(found) > 0, err
}

// Read returns a page of records.
func (s *Store) Read(ctx context.Context, acct relay.AccountID, iccid sim.ICCID, in Span, behind Cursor, limit int) ([]StoredRecord, error) {
	start, n := in.From.UnixMicro(), int64(0)
	if behind.N != 0 {
		start, n = behind.Start.UnixMicro(), behind.N
	}
	query, args := readAll, []any{acct, in.To.UnixMicro(), start, n, limit}
	if iccid != "" {
		query, args = readSIM, append(args, iccid)
	}
	return db.List(ctx, s.db, "usage records", query, stored, args...)
}

// stored are the columns of a record.
func stored(k *StoredRecord) []any {
	var start int64
	return []any{&k.N, &k.Use.ICCID, &start, &k.Use.Type, &k.Use.Bytes, &k.Use.Duration, &k.Use.ID, func() {
		k.Start = time.UnixMicro(start).UTC()
		k.Use.Start = k.Start
	}}
}

// Steps adds up what one SIM used in each step of a time.
func (s *Store) Steps(ctx context.Context, acct relay.AccountID, iccid string, in Span, step time.Duration) ([]StepSum, error) {
	return db.List(ctx, s.db, "usage of SIM "+iccid, `
SELECT started / $5 AS step, type, CAST(SUM(bytes) AS BIGINT), CAST(SUM(duration) AS BIGINT), COUNT(*) FROM usage_record
WHERE account = $1 AND iccid = $2 AND started >= $3 AND started < $4
GROUP BY step, type ORDER BY step, type`, func(sum *StepSum) []any {
		var n int64
		return []any{&n, &sum.Type, &sum.Bytes, &sum.Duration, &sum.Records, func() { sum.At = time.UnixMicro(n * step.Microseconds()).UTC() }}
	}, acct, iccid, in.From.UnixMicro(), in.To.UnixMicro(), step.Microseconds())
}

// piece is how many SIMs are added up at one time.
const piece = 500

// Sums adds up the usage of each SIM, page by page of the SIMs.
func (s *Store) Sums(ctx context.Context, acct relay.AccountID, in Span, each func([]Sum) error) error {
	first, last := MonthOf(in.From), MonthOf(in.To.Add(-time.Microsecond))
	for after := ""; ; {
		page, err := db.List(ctx, s.db, fmt.Sprintf("usage of account %s", acct), sumSIMs, (*sum).fields,
			acct, after, first, last, piece, in.From.UnixMicro(), in.To.UnixMicro())
		if err != nil || len(page) == 0 {
			return err
		}
		sums := make([]Sum, 0, len(page))
		for _, one := range page {
			if one.bytes.Valid {
				sums = append(sums, Sum{ICCID: one.iccid, Bytes: one.bytes.Int64})
			}
		}
		if len(sums) > 0 {
			if err := each(sums); err != nil {
				return err
			}
		}
		if len(page) < piece {
			return nil
		}
		after = page[piece-1].iccid
	}
}

// sum is the usage of a SIM, if it has records.
type sum struct {
	iccid string
	bytes sql.NullInt64
}

func (s *sum) fields() []any { return []any{&s.iccid, &s.bytes} }

const deleteRows = `
DELETE FROM usage_report_row WHERE (report, subscriber, iccid) IN (
  SELECT report, subscriber, iccid FROM usage_report_row WHERE report = $1 LIMIT $2)`

// Begin makes an empty report.
func (s *Store) Begin(ctx context.Context, id string, at time.Time) error {
	if err := s.db.Run(ctx, "usage report "+id, db.Upsert("usage_report", "id", "begun"), id, at); err != nil {
		return err
	}
	return s.deleteRows(ctx, id)
}

// deleteRows deletes the rows of a report in portions, so that no transaction is
// long.
func (s *Store) deleteRows(ctx context.Context, id string) error {
	return s.db.Sweep(ctx, "usage report "+id, db.SweepMost, deleteRows, id)
}

// Add adds rows to a report.
func (s *Store) Add(ctx context.Context, id string, rows []Row) error {
	b := db.BatchOf("iccid, subscriber, company, bytes", rows, fields)
	// Of several rows of one SIM this takes the last.
	return s.db.Run(ctx, "usage report "+id, `
INSERT INTO usage_report_row (report, subscriber, iccid, company, bytes)
SELECT $1, subscriber, iccid, company, bytes FROM batch WHERE n IN (SELECT MAX(n) FROM batch GROUP BY subscriber, iccid)
ON CONFLICT (report, subscriber, iccid) DO UPDATE SET company = excluded.company, bytes = excluded.bytes`, id, b)
}

// Rows returns a page of a report.
func (s *Store) Rows(ctx context.Context, id string, offset, limit int) ([]Row, error) {
	return db.List(ctx, s.db, "usage report "+id, `
SELECT iccid, subscriber, company, bytes FROM usage_report_row
WHERE report = $1 ORDER BY subscriber, iccid LIMIT $2 OFFSET $3`, fields, id, limit, offset)
}

// fields are the columns of a row.
func fields(r *Row) []any { return []any{&r.ICCID, &r.Subscriber, &r.Company, &r.Bytes} }

// Sweep removes reports that can no longer be read, ReportLife after they
// were begun.
func (s *Store) Sweep(ctx context.Context, now time.Time) error {
	for {
		ids, err := db.Values[string](ctx, s.db, "usage reports", `
SELECT id FROM usage_report WHERE begun < $1 ORDER BY begun LIMIT 100`, now.Add(-ReportLife))
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
