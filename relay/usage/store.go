package usage

import (
	"cmp"
	"context"
	"maps"
	"slices"
	"time"

	"github.com/penstock/penstock/relay"
	"github.com/penstock/penstock/relay/db"
)

// Store keeps records, totals and reports. It is safe for concurrent use.
type Store struct{ db *db.DB }

// NewStore returns the store of usage in a database.
func NewStore(database *db.DB) *Store { return &Store{db: database} }

// maxTotal is the largest total in bytes: half of what a number holds, so that one
// more record never overflows it.
const maxTotal = int64(1) << 62

// Put keeps records and adds those that are new to their totals, all or none, in the order of
// ids, in which gateways that were given the same records do not lock each other out.
func (s *Store) Put(ctx context.Context, records []Record) error {
	batch := batchOf(records)
	return s.db.Write(ctx, "usage records", func(ctx context.Context, tx *db.Tx) error {
		added, err := db.List(ctx, tx, "usage records", `
INSERT INTO usage_record (account, id, iccid, pool, started, type, bytes, duration)
SELECT account, id, iccid, pool, started, type, bytes, duration FROM batch WHERE true ORDER BY account, id, n
ON CONFLICT (account, id) DO NOTHING
RETURNING account, iccid, pool, started, bytes`, (*added).fields, batch)
		if err != nil {
			return err
		}
		// This stops at maxTotal. Gateways that add to the same totals lock them in the same order,
		// that of the batch.
		return tx.Run(ctx, "usage totals", `
INSERT INTO usage_total (account, scope, subject, month, bytes, done)
SELECT account, scope, subject, month, bytes, 0 FROM batch WHERE true ORDER BY n
ON CONFLICT (account, scope, subject, month) DO UPDATE
SET bytes = {least}(usage_total.bytes, 4611686018427387904 - excluded.bytes) + excluded.bytes`, totalsOf(added))
	})
}

func batchOf(records []Record) *db.Batch {
	return db.BatchOf("account, id, iccid, pool, started, type, bytes, duration",
		records, func(r *Record) []any {
			u := &r.Use
			return []any{r.Account, u.ID, u.ICCID, r.Pool, u.Start.UnixMicro(), u.Type, u.Bytes, u.Duration}
		})
}

// added is a new record.
type added struct {
	account     relay.AccountID
	iccid, pool string
	started     int64
	bytes       int64
}

func (a *added) fields() []any { return []any{&a.account, &a.iccid, &a.pool, &a.started, &a.bytes} }

// totalKey is the key of a total.
type totalKey struct {
	account relay.AccountID
	Subject
}

func compareTotalKeys(a, b totalKey) int {
	return cmp.Or(cmp.Compare(a.account, b.account), cmp.Compare(a.Scope, b.Scope), cmp.Compare(a.ID, b.ID), cmp.Compare(a.Month, b.Month))
}

// totalsOf returns the additions of new records to totals, in the order of their keys.
func totalsOf(records []added) *db.Batch {
	sums := make(map[totalKey]int64)
	for _, r := range records {
		month := MonthOf(time.UnixMicro(r.started))
		subjects := []Subject{{Scope: OfSIM, ID: r.iccid, Month: month}, {Scope: OfPool, ID: r.pool, Month: month}}
		if r.pool == "" {
			subjects = subjects[:1]
		}
		for _, one := range subjects {
			c := totalKey{r.account, one}
			sums[c] = min(sums[c], maxTotal-min(r.bytes, maxTotal)) + min(r.bytes, maxTotal)
		}
	}
	b := db.NewBatch("account, scope, subject, month, bytes")
	for _, c := range slices.SortedFunc(maps.Keys(sums), compareTotalKeys) {
		b.Add(c.account, c.Scope, c.ID, c.Month, sums[c])
	}
	return b
}

// Totals returns the usage of subjects and the steps that were taken.
func (s *Store) Totals(ctx context.Context, acct relay.AccountID, subjects []Subject) ([]Total, error) {
	b := db.BatchOf("account, scope, subject, month", subjects, func(one *Subject) []any {
		return []any{acct, one.Scope, one.ID, one.Month}
	})
	return db.Numbered(ctx, s.db, "usage totals", `
SELECT batch.n, usage_total.bytes, usage_total.done
FROM batch JOIN usage_total
  ON usage_total.account = batch.account AND usage_total.scope = batch.scope AND usage_total.subject = batch.subject
  AND usage_total.month = batch.month`, len(subjects), func(t *Total) []any { return []any{&t.Bytes, &t.Done} }, b)
}

// AddSteps adds steps to those that were done about a subject.
func (s *Store) AddSteps(ctx context.Context, acct relay.AccountID, one Subject, steps Steps) error {
	noun := "usage total of " + string(one.Scope) + " " + one.ID
	return s.db.Run(ctx, noun, `
INSERT INTO usage_total (account, scope, subject, month, bytes, done) VALUES ($1, $2, $3, $4, 0, $5)
ON CONFLICT (account, scope, subject, month) DO UPDATE SET done = usage_total.done | excluded.done`, acct, one.Scope, one.ID, one.Month, steps)
}

// RemoveSteps takes steps away from those of a subject that used less than below.
func (s *Store) RemoveSteps(ctx context.Context, acct relay.AccountID, one Subject, steps Steps, below int64) error {
	noun := "usage total of " + string(one.Scope) + " " + one.ID
	return s.db.Run(ctx, noun, `
UPDATE usage_total SET done = done & $5
WHERE account = $1 AND scope = $2 AND subject = $3 AND month = $4 AND bytes < $6`, acct, one.Scope, one.ID, one.Month, int64(^steps), below)
}
