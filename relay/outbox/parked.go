package outbox

import (
	"context"
	"math"
	"time"

	"github.com/penstock/penstock/relay/db"
)

const parkedLabel = "deliveries that wait for breakers"

// selectParked finds each endpoint with parked deliveries by a few steps in the index, for any number
// of deliveries.
const selectParked = `
		WITH RECURSIVE accounts(account) AS (
		  SELECT CAST(-1 AS BIGINT)
		  UNION ALL
		  SELECT (
		    SELECT d.account
		    FROM delivery AS d
		    WHERE d.waits = 'breaker' AND d.account > accounts.account
		    ORDER BY d.account
		    LIMIT 1)
		  FROM accounts
		  WHERE accounts.account IS NOT NULL),
		parked(account, endpoint) AS (
		  SELECT account, (
		    SELECT d.endpoint
		    FROM delivery AS d
		    WHERE d.waits = 'breaker' AND d.account = accounts.account
		    ORDER BY d.endpoint
		    LIMIT 1)
		  FROM accounts
		  WHERE account >= 0
		  UNION ALL
		  SELECT account, (
		    SELECT d.endpoint
		    FROM delivery AS d
		    WHERE d.waits = 'breaker' AND d.account = parked.account AND d.endpoint > parked.endpoint
		    ORDER BY d.endpoint
		    LIMIT 1)
		  FROM parked
		  WHERE parked.endpoint IS NOT NULL)
		SELECT account, endpoint, (
		  SELECT d.held_until
		  FROM delivery AS d
		  WHERE d.waits = 'breaker' AND d.account = parked.account AND d.endpoint = parked.endpoint
		  ORDER BY d.held_until
		  LIMIT 1)
		FROM parked
		WHERE endpoint IS NOT NULL`

// ParkedEndpoints returns the endpoints with deliveries that wait for breakers, in any order.
func (s *Store) ParkedEndpoints(ctx context.Context) ([]ParkedEndpoint, error) {
	return db.List(ctx, s.db, parkedLabel, selectParked, func(e *ParkedEndpoint) []any {
		return []any{&e.Account, &e.Endpoint, db.Time(&e.FirstParkedUntil)}
	})
}

// CountParked counts the deliveries that wait for breakers, by endpoint. Unlike ParkedEndpoints, it
// reads all of these deliveries.
func (s *Store) CountParked(ctx context.Context) (map[string]int, error) {
	// An endpoint has one account; grouping by both follows the index.
	const query = `
		SELECT endpoint, COUNT(*)
		FROM delivery
		WHERE waits = 'breaker'
		GROUP BY account, endpoint`
	return db.Map[string, int](ctx, s.db, parkedLabel, query)
}

// LeaseParked leases up to n parked deliveries of an endpoint, in the order of ParkedUntil: deliveries
// that are parked until cutoff or earlier, or all if cutoff is zero.
func (s *Store) LeaseParked(ctx context.Context, parked ParkedEndpoint, n int, cutoff, leaseUntil time.Time) ([]Delivery, error) {
	const label = "deliveries: lease parked"
	const query = `
		SELECT ` + columns + `
		FROM delivery AS d
		WHERE d.waits = 'breaker' AND d.account = $1 AND d.endpoint = $2 AND d.held_until <= $3
		ORDER BY d.held_until, d.id
		LIMIT $4 {skip locked}`
	const update = `
		UPDATE delivery
		SET due = $1, leased = 1, waits = ''
		FROM batch AS b
		WHERE delivery.id = b.id AND delivery.account = b.account`
	maxParkedUntil := int64(math.MaxInt64)
	if !cutoff.IsZero() {
		maxParkedUntil = db.Millis(cutoff)
	}
	return db.Transact(ctx, s.db, label, func(ctx context.Context, tx *db.Tx) ([]Delivery, error) {
		ds, err := read(ctx, tx, label, query, parked.Account, parked.Endpoint, maxParkedUntil, min(n, chunkSize))
		if err != nil {
			return nil, err
		}
		for i := range ds {
			ds[i].NextAttemptAt, ds[i].WaitsFor = leaseUntil, ""
		}
		return ds, tx.Run(ctx, label, update, leaseUntil, keysOf(ds))
	})
}
