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
		SELECT n
		FROM usage_record
		WHERE account = $1
		  AND started >= $2
		  AND started < $3
		LIMIT 1`

	anyOfSubscriber = `
		SELECT r.n
		FROM sim
		CROSS JOIN usage_record r
		WHERE sim.account = $1
		  AND sim.subscriber = $4
		  AND sim.subscriber <> ''
		  AND r.account = sim.account
		  AND r.iccid = sim.iccid
		  AND r.started >= $2
		  AND r.started < $3
		LIMIT 1`

	readAll = `
		SELECT n, iccid, started, type, bytes, duration, id
		FROM usage_record
		WHERE account = $1
		  AND started < $2
		  AND (started, n) > ($3, $4)
		ORDER BY started, n
		LIMIT $5`

	readSIM = `
		SELECT n, iccid, started, type, bytes, duration, id
		FROM usage_record
		WHERE account = $1
		  AND iccid = $6
		  AND started < $2
		  AND (started, n) > ($3, $4)
		ORDER BY started, n
		LIMIT $5`

	// sumSIMs adds up the records of the next SIMs with totals in a range of months. The sum is null
	// if a SIM has no records in the period.
	sumSIMs = `
		SELECT sims.subject, (
		  SELECT CAST(SUM(bytes) AS BIGINT)
		  FROM usage_record
		  WHERE account = $1
		    AND iccid = sims.subject
		    AND started >= $6
		    AND started < $7
		)
		FROM (
		  SELECT DISTINCT subject
		  FROM usage_total
		  WHERE account = $1
		    AND scope = 'sim'
		    AND subject > $2
		    AND month >= $3
		    AND month <= $4
		  ORDER BY subject
		  LIMIT $5
		) AS sims
		ORDER BY sims.subject`
)

// Any reports whether an account has records in a period. If subscriber is not empty, Any considers
// only the records of that subscriber's SIMs.
func (s *Store) Any(ctx context.Context, acct relay.AccountID, span Span, subscriber string) (bool, error) {
	statement, args := anyRecord, []any{acct, span.From.UnixMicro(), span.To.UnixMicro()}
	if subscriber != "" {
		statement, args = anyOfSubscriber, append(args, subscriber)
	}
	rows, err := db.Values[int64](ctx, s.db, "usage records", statement, args...)
	return len(rows) > 0, err
}

// Read returns up to limit records of a period after a cursor, by start time. If iccid is not
// empty, Read returns only records of that SIM.
func (s *Store) Read(ctx context.Context, acct relay.AccountID, iccid sim.ICCID, span Span, cursor Cursor, limit int) ([]StoredRecord, error) {
	start, n := span.From.UnixMicro(), int64(0)
	if cursor.N != 0 {
		start, n = cursor.Start.UnixMicro(), cursor.N
	}
	statement, args := readAll, []any{acct, span.To.UnixMicro(), start, n, limit}
	if iccid != "" {
		statement, args = readSIM, append(args, iccid)
	}
	fields := func(r *StoredRecord) []any {
		var started int64
		return []any{&r.N, &r.Use.ICCID, &started, &r.Use.Type, &r.Use.Bytes, &r.Use.Duration, &r.Use.ID, func() {
			r.Start = time.UnixMicro(started).UTC()
			r.Use.Start = r.Start
		}}
	}
	return db.List(ctx, s.db, "usage records", statement, fields, args...)
}

// IntervalSums adds up the usage of a SIM in each interval of a period.
func (s *Store) IntervalSums(ctx context.Context, acct relay.AccountID, iccid string, span Span, interval time.Duration) ([]IntervalSum, error) {
	const statement = `
		SELECT started / $5 AS i, type, CAST(SUM(bytes) AS BIGINT), CAST(SUM(duration) AS BIGINT), COUNT(*)
		FROM usage_record
		WHERE account = $1
		  AND iccid = $2
		  AND started >= $3
		  AND started < $4
		GROUP BY i, type
		ORDER BY i, type`
	fields := func(sum *IntervalSum) []any {
		var n int64
		return []any{&n, &sum.Type, &sum.Bytes, &sum.Duration, &sum.Records, func() { sum.Start = time.UnixMicro(n * interval.Microseconds()).UTC() }}
	}
	return db.List(ctx, s.db, "usage of SIM "+iccid, statement, fields,
		acct, iccid, span.From.UnixMicro(), span.To.UnixMicro(), interval.Microseconds())
}

// sumPage is the number of SIMs that are added up at a time.
const sumPage = 500

// Sums adds up the usage of each SIM in a period, and calls add with each page of sums.
func (s *Store) Sums(ctx context.Context, acct relay.AccountID, span Span, add func([]Sum) error) error {
	type nullSum struct {
		iccid string
		bytes sql.NullInt64
	}
	fields := func(s *nullSum) []any { return []any{&s.iccid, &s.bytes} }
	firstMonth, lastMonth := MonthOf(span.From), MonthOf(span.To.Add(-time.Microsecond))
	for cursor := ""; ; {
		page, err := db.List(ctx, s.db, fmt.Sprintf("usage of account %s", acct), sumSIMs, fields,
			acct, cursor, firstMonth, lastMonth, sumPage, span.From.UnixMicro(), span.To.UnixMicro())
		if err != nil || len(page) == 0 {
			return err
		}
		sums := make([]Sum, 0, len(page))
		for _, sum := range page {
			if sum.bytes.Valid {
				sums = append(sums, Sum{ICCID: sum.iccid, Bytes: sum.bytes.Int64})
			}
		}
		if len(sums) > 0 {
			if err := add(sums); err != nil {
				return err
			}
		}
		if len(page) < sumPage {
			return nil
		}
		cursor = page[sumPage-1].iccid
	}
}

// AccountUsage is the usage of an account's SIMs in a month, and the number of SIMs that reached
// their monthly limit.
type AccountUsage struct {
	Account relay.AccountID
	Bytes   float64
	AtLimit int64
}

// AccountUsages returns the usage of all accounts in a month, without accounts that have no usage.
func (s *Store) AccountUsages(ctx context.Context, month Month) ([]AccountUsage, error) {
	const statement = `
		SELECT t.account,
		  SUM(CAST(t.bytes AS DOUBLE PRECISION)),
		  COUNT(CASE WHEN sim.monthly > 0 AND t.bytes >= sim.monthly THEN 1 END)
		FROM usage_total t
		JOIN sim
		  ON sim.account = t.account
		  AND sim.iccid = t.subject
		WHERE t.scope = 'sim'
		  AND t.month = $1
		GROUP BY t.account`
	fields := func(u *AccountUsage) []any { return []any{&u.Account, &u.Bytes, &u.AtLimit} }
	return db.List(ctx, s.db, "usage of accounts", statement, fields, month)
}
