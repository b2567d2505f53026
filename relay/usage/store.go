package usage

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/penstock/penstock/relay"
	"github.com/penstock/penstock/relay/db"
)

// Store stores records, totals and reports. It is safe for concurrent use.
type Store struct{ db *db.DB }

// NewStore returns the store of usage in a database.
func NewStore(database *db.DB) *Store { return &Store{db: database} }

// maxTotal is the largest total, in bytes. Each addition is capped at maxTotal before it can overflow.
const maxTotal = int64(1) << 62

// Put saves records, all or none, and adds each to the totals of its SIM and its pool, up to
// maxTotal. It ignores a record with an id that the account already has. The error is
// relay.KindUnavailable if a retry may succeed.
func (s *Store) Put(ctx context.Context, records []Record) error {
	// Both statements lock rows in a fixed order, so that gateways that save the same records do not
	// deadlock.
	const insertRecords = `
		INSERT INTO usage_record (account, id, iccid, pool, started, type, bytes, duration)
		SELECT account, id, iccid, pool, started, type, bytes, duration
		FROM batch
		WHERE true
		ORDER BY account, id, n
		ON CONFLICT (account, id) DO NOTHING
		RETURNING account, iccid, pool, started, bytes`
	const addTotals = `
		INSERT INTO usage_total (account, scope, subject, month, bytes, done)
		SELECT account, scope, subject, month, bytes, 0
		FROM batch
		WHERE true
		ORDER BY n
		ON CONFLICT (account, scope, subject, month) DO UPDATE
		SET bytes = {least}(usage_total.bytes, 4611686018427387904 - excluded.bytes) + excluded.bytes`
	rows := db.BatchOf("account, id, iccid, pool, started, type, bytes, duration", records, func(r *Record) []any {
		u := &r.Use
		return []any{r.Account, u.ID, u.ICCID, r.Pool, u.Start.UnixMicro(), u.Type, u.Bytes, u.Duration}
	})
	return s.db.Write(ctx, "usage records", func(ctx context.Context, tx *db.Tx) error {
		added, err := db.List(ctx, tx, "usage records", insertRecords, func(r *Record) []any {
			var started int64
			return []any{&r.Account, &r.Use.ICCID, &r.Pool, &started, &r.Use.Bytes, func() { r.Use.Start = time.UnixMicro(started) }}
		}, rows)
		if err != nil {
			return err
		}
		return tx.Run(ctx, "usage totals", addTotals, totalsOf(added))
	})
}

// totalsOf returns the additions of new records to totals, in the order of compareCounters.
func totalsOf(records []Record) *db.Batch {
	sums := make(map[counter]int64)
	for _, r := range records {
		bytes := min(r.Use.Bytes, maxTotal)
		simCounter, poolCounter := r.counters()
		sums[simCounter] = min(sums[simCounter], maxTotal-bytes) + bytes
		if r.Pool != "" {
			sums[poolCounter] = min(sums[poolCounter], maxTotal-bytes) + bytes
		}
	}
	b := db.NewBatch("account, scope, subject, month, bytes")
	for _, c := range slices.SortedFunc(maps.Keys(sums), compareCounters) {
		b.Add(c.account, c.subject.Scope, c.subject.ID, c.subject.Month, sums[c])
	}
	return b
}

// Totals returns the totals of an account's subjects, in the order of the subjects.
func (s *Store) Totals(ctx context.Context, acct relay.AccountID, subjects []Subject) ([]Total, error) {
	const statement = `
		SELECT batch.n, t.bytes, t.done
		FROM batch
		JOIN usage_total t
		  ON t.account = batch.account
		  AND t.scope = batch.scope
		  AND t.subject = batch.subject
		  AND t.month = batch.month`
	keys := db.BatchOf("account, scope, subject, month", subjects, func(s *Subject) []any {
		return []any{acct, s.Scope, s.ID, s.Month}
	})
	fields := func(t *Total) []any { return []any{&t.Bytes, &t.Steps} }
	return db.Numbered(ctx, s.db, "usage totals", statement, len(subjects), fields, keys)
}

// AddSteps adds steps to the recorded steps of a subject.
func (s *Store) AddSteps(ctx context.Context, acct relay.AccountID, subject Subject, steps Steps) error {
	const statement = `
		INSERT INTO usage_total (account, scope, subject, month, bytes, done)
		VALUES ($1, $2, $3, $4, 0, $5)
		ON CONFLICT (account, scope, subject, month) DO UPDATE
		SET done = usage_total.done | excluded.done`
	return s.db.Run(ctx, totalLabel(subject), statement, acct, subject.Scope, subject.ID, subject.Month, steps)
}

// RemoveSteps removes steps from the recorded steps of a subject, so that the Meter takes them
// again. It does nothing if the subject has used limitBytes or more: usage may have reached
// the limit since the caller read it.
func (s *Store) RemoveSteps(ctx context.Context, acct relay.AccountID, subject Subject, steps Steps, limitBytes int64) error {
	const statement = `
		UPDATE usage_total
		SET done = done & $5
		WHERE account = $1
		  AND scope = $2
		  AND subject = $3
		  AND month = $4
		  AND bytes < $6`
	return s.db.Run(ctx, totalLabel(subject), statement,
		acct, subject.Scope, subject.ID, subject.Month, int64(^steps), limitBytes)
}

func totalLabel(s Subject) string { return fmt.Sprintf("usage total of %s %s", s.Scope, s.ID) }
