package outbox

import (
	"cmp"
	"context"
	"math"
	"slices"
	"time"

	"github.com/penstock/penstock/relay"
	"github.com/penstock/penstock/relay/db"
)

// Due returns deliveries whose next attempt or lease lies at or before the given
// time, oldest first.
func (s *Store) Due(ctx context.Context, before time.Time, limit int) ([]Ref, error) {
	return db.List(ctx, s.db, "due deliveries", `SELECT id, account FROM delivery WHERE due > 0 AND due <= $1 ORDER BY due LIMIT $2`, refFields, before, limit)
}

// Lease takes the right to make the next attempt.
func (s *Store) Lease(ctx context.Context, acct relay.AccountID, id string, now, until time.Time) (d Delivery, taken bool, err error) {
	noun := "delivery " + id + ": lease"
	d, err = db.Transact(ctx, s.db, noun, func(ctx context.Context, tx *db.Tx) (Delivery, error) {
		// The sum keeps the engine from the index of what is due.
		n, err := tx.Exec(ctx, noun, `
UPDATE delivery AS d SET due = $1, leased = 1
WHERE d.id = $2 AND d.account = $3 AND d.due + 0 BETWEEN 1 AND $4`, until, id, acct, now)
		if err != nil {
			return Delivery{}, err
		}
		taken = n > 0
		return readOne(ctx, tx, noun, acct, id, tx.Now())
	})
	return d, taken && err == nil, err
}

// LeaseDue leases those of deliveries that are due.
func (s *Store) LeaseDue(ctx context.Context, refs []Ref, now, until time.Time) ([]Delivery, error) {
	const noun = "deliveries: lease"
	return db.Transact(ctx, s.db, noun, func(ctx context.Context, tx *db.Tx) ([]Delivery, error) {
		taken, err := db.List(ctx, tx, noun, `
UPDATE delivery SET due = $1, leased = 1
FROM batch AS b WHERE delivery.id = b.id AND delivery.account = b.account AND delivery.due + 0 BETWEEN 1 AND $2
RETURNING delivery.id, delivery.account`, refFields, until, now, keys(refs))
		if err != nil {
			return nil, err
		}
		return read(ctx, tx, noun, load, tx.Now(), keys(taken))
	})
}

// Renew moves the end of leases and returns the deliveries of which the caller still
// has the lease.
func (s *Store) Renew(ctx context.Context, ls []Lease, until time.Time) ([]Ref, error) {
	return s.moveLeases(ctx, "deliveries: renew", ls, until, true)
}

// Release gives leases back unused.
func (s *Store) Release(ctx context.Context, ls []Lease, due time.Time) error {
	_, err := s.moveLeases(ctx, "deliveries: release", ls, due, false)
	return err
}

func (s *Store) moveLeases(ctx context.Context, noun string, ls []Lease, to time.Time, leased bool) (moved []Ref, err error) {
	ls = db.FirstOfEach(ls, func(a, b Lease) int {
		return cmp.Or(cmp.Compare(a.Ref.ID, b.Ref.ID), cmp.Compare(a.Ref.Account, b.Ref.Account))
	})
	for chunk := range slices.Chunk(ls, chunkSize) {
		rows := db.BatchOf("id, account, ends", chunk, func(l *Lease) []any { return []any{l.Ref.ID, l.Ref.Account, l.End} })
		// Who takes a lease after its end makes it end later.
		some, err := db.Returning(ctx, s.db, noun, `
UPDATE delivery SET due = $1, leased = $2
FROM batch AS b WHERE delivery.id = b.id AND delivery.account = b.account AND delivery.leased = 1 AND delivery.due + 0 <= b.ends
RETURNING delivery.id, delivery.account`, refFields, to, leased, rows)
		if err != nil {
			return moved, err
		}
		moved = append(moved, some...)
	}
	return moved, nil
}

// parked finds the endpoints of parked deliveries by a few steps in the index each,
// however many deliveries there are.
const parked = `
WITH RECURSIVE accounts(account) AS (
  SELECT CAST(-1 AS BIGINT)
  UNION ALL
  SELECT (SELECT d.account FROM delivery AS d WHERE d.waits = 'breaker' AND d.account > accounts.account ORDER BY d.account LIMIT 1)
  FROM accounts WHERE accounts.account IS NOT NULL),
parked(account, endpoint) AS (
  SELECT account, (
    SELECT d.endpoint FROM delivery AS d WHERE d.waits = 'breaker' AND d.account = accounts.account ORDER BY d.endpoint LIMIT 1)
  FROM accounts WHERE account >= 0
  UNION ALL
  SELECT account, (
    SELECT d.endpoint FROM delivery AS d
    WHERE d.waits = 'breaker' AND d.account = parked.account AND d.endpoint > parked.endpoint ORDER BY d.endpoint LIMIT 1)
  FROM parked WHERE parked.endpoint IS NOT NULL)
SELECT account, endpoint, (
  SELECT d.held_until FROM delivery AS d
  WHERE d.waits = 'breaker' AND d.account = parked.account AND d.endpoint = parked.endpoint ORDER BY d.held_until LIMIT 1)
FROM parked WHERE endpoint IS NOT NULL`

// Parked returns the endpoints with deliveries that wait for breakers.
func (s *Store) Parked(ctx context.Context) ([]ParkedEndpoint, error) {
	return db.List(ctx, s.db, "deliveries that wait for breakers", parked, func(e *ParkedEndpoint) []any {
		return []any{&e.Account, &e.Endpoint, db.Time(&e.First)}
	})
}

// CountParked counts the deliveries that wait for breakers, by endpoint. An endpoint has one
// account; grouping by both follows the index.
func (s *Store) CountParked(ctx context.Context) (map[string]int, error) {
	return db.Map[string, int](ctx, s.db, "deliveries that wait for breakers", `
SELECT endpoint, COUNT(*) FROM delivery WHERE waits = 'breaker' GROUP BY account, endpoint`)
}

// Take leases parked deliveries of an endpoint.
func (s *Store) Take(ctx context.Context, endpoint ParkedEndpoint, n int, before, until time.Time) ([]Delivery, error) {
	const noun = "deliveries: take"
	most := int64(math.MaxInt64)
	if !before.IsZero() {
		most = db.Millis(before)
	}
	return db.Transact(ctx, s.db, noun, func(ctx context.Context, tx *db.Tx) ([]Delivery, error) {
		ds, err := read(ctx, tx, noun, `
SELECT `+columns+`FROM delivery AS d
WHERE d.waits = 'breaker' AND d.account = $1 AND d.endpoint = $2 AND d.held_until <= $3
ORDER BY d.held_until, d.id LIMIT $4 {skip locked}`, endpoint.Account, endpoint.Endpoint, most, min(n, chunkSize))
		if err != nil {
			return nil, err
		}
		for i := range ds {
			ds[i].NextAttemptAt, ds[i].Waits = until, ""
		}
		return ds, tx.Run(ctx, noun, `
UPDATE delivery SET due = $1, leased = 1, waits = ''
FROM batch AS b WHERE delivery.id = b.id AND delivery.account = b.account`, until, keysOf(ds))
	})
}
