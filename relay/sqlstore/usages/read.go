package usages

import (
	"context"
	"database/sql"
	"fmt"
	"time"

	"github.com/penstock/penstock/relay/account"
	"github.com/penstock/penstock/relay/sqlstore"
	"github.com/penstock/penstock/relay/usage"
)

const (
	anyRecord = `
SELECT n FROM usage_record WHERE account = $1 AND started >= $2 AND started < $3 LIMIT 1`

	anyOfSIMs = `
SELECT usage_record.n FROM batch JOIN usage_record ON usage_record.iccid = batch.iccid
WHERE usage_record.account = $1 AND usage_record.started >= $2 AND usage_record.started < $3
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
func (s *Store) Any(ctx context.Context, acct account.ID, in usage.Span, iccids []string) (bool, error) {
	query, args := anyRecord, []any{acct, in.From.UnixMicro(), in.To.UnixMicro()}
	if iccids != nil {
		query, args = anyOfSIMs, append(args, sqlstore.Column("iccid text", iccids))
	}
	found, err := sqlstore.Values[int64](ctx, s.db, "usage records", query, args...)
	return len(found) > 0, err
}

// Read returns a page of records.
func (s *Store) Read(ctx context.Context, acct account.ID, iccid string, in usage.Span, behind usage.Cursor, limit int) ([]usage.StoredRecord, error) {
	start, n := in.From.UnixMicro(), int64(0)
	if behind.N != 0 {
		start, n = behind.Start.UnixMicro(), behind.N
	}
	query, args := readAll, []any{acct, in.To.UnixMicro(), start, n, limit}
	if iccid != "" {
		query, args = readSIM, append(args, iccid)
	}
	return sqlstore.List(ctx, s.db, "usage records", query, stored, args...)
}

// stored are the columns of a record.
func stored(k *usage.StoredRecord) []any {
	var start int64
	return []any{&k.N, &k.Use.ICCID, &start, &k.Use.Type, &k.Use.Bytes, &k.Use.Duration, &k.Use.ID, func() {
		k.Start = time.UnixMicro(start).UTC()
		k.Use.Start = k.Start
	}}
}

// Steps adds up what one SIM used in each step of a time.
func (s *Store) Steps(ctx context.Context, acct account.ID, iccid string, in usage.Span, step time.Duration) ([]usage.StepSum, error) {
	return sqlstore.List(ctx, s.db, "usage of SIM "+iccid, `
SELECT started / $5 AS step, type, CAST(SUM(bytes) AS BIGINT), CAST(SUM(duration) AS BIGINT), COUNT(*) FROM usage_record
WHERE account = $1 AND iccid = $2 AND started >= $3 AND started < $4
GROUP BY step, type ORDER BY step, type`, func(sum *usage.StepSum) []any {
		var n int64
		return []any{&n, &sum.Type, &sum.Bytes, &sum.Duration, &sum.Records, func() { sum.At = time.UnixMicro(n * step.Microseconds()).UTC() }}
	}, acct, iccid, in.From.UnixMicro(), in.To.UnixMicro(), step.Microseconds())
}

// piece is how many SIMs are added up at one time.
const piece = 500

// Sums adds up the usage of each SIM, page by page of the SIMs.
func (s *Store) Sums(ctx context.Context, acct account.ID, in usage.Span, each func([]usage.Sum) error) error {
	first, last := usage.MonthOf(in.From), usage.MonthOf(in.To.Add(-time.Microsecond))
	for after := ""; ; {
		page, err := sqlstore.List(ctx, s.db, fmt.Sprintf("usage of account %s", acct), sumSIMs, (*sum).fields,
			acct, after, first, last, piece, in.From.UnixMicro(), in.To.UnixMicro())
		if err != nil || len(page) == 0 {
			return err
		}
		sums := make([]usage.Sum, 0, len(page))
		for _, one := range page {
			if one.bytes.Valid {
				sums = append(sums, usage.Sum{ICCID: one.iccid, Bytes: one.bytes.Int64})
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
