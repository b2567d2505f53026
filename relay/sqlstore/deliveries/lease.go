package deliveries

import (
	"context"
	"database/sql"
	"math"
	"slices"
	"time"

	"github.com/penstock/penstock/relay/account"
	"github.com/penstock/penstock/relay/outbox"
	"github.com/penstock/penstock/relay/sqlstore"
)

const (
	due = `SELECT id, account FROM delivery WHERE due > 0 AND due <= $1 ORDER BY due LIMIT $2`

	// The sum keeps the engine from the index of what is due.
	lease = `UPDATE delivery AS d SET due = $1, leased = 1
WHERE d.id = $2 AND d.account = $3 AND d.due + 0 BETWEEN 1 AND $4`

	moveLeases = `UPDATE delivery SET due = $1, leased = $2
FROM batch AS b WHERE delivery.id = b.id AND delivery.account = b.account AND delivery.leased = 1`

	parked = `SELECT account, endpoint, COUNT(*), MIN(held_until) FROM delivery WHERE waits = 'breaker' GROUP BY account, endpoint`

	lockParked = `SELECT ` + columns + `d.attempts FROM delivery AS d
WHERE d.waits = 'breaker' AND d.account = $1 AND d.endpoint = $2 AND d.held_until <= $3
ORDER BY d.held_until, d.id LIMIT $4 {skip locked}`

	take = `UPDATE delivery SET due = $1, leased = 1, waits = ''
FROM batch AS b WHERE delivery.id = b.id AND delivery.account = b.account`
)

// Due returns deliveries whose next attempt or lease lies at or before the given
// time, oldest first.
func (s *Store) Due(ctx context.Context, before time.Time, limit int) ([]outbox.Ref, error) {
	return sqlstore.List(ctx, s.db, "due deliveries", due, scanRef, sqlstore.Millis(before), int64(limit))
}

// Lease takes the right to make the next attempt.
func (s *Store) Lease(ctx context.Context, acct account.ID, id string, now, until time.Time) (d outbox.Delivery, taken bool, err error) {
	noun := "delivery " + id + ": lease"
	err = s.db.Write(ctx, noun, func(ctx context.Context, tx *sqlstore.Tx) error {
		n, err := tx.Exec(ctx, noun, lease, sqlstore.Millis(until), id, int64(acct), sqlstore.Millis(now))
		if err != nil {
			return err
		}
		taken = n > 0
		d, err = sqlstore.One(ctx, tx, noun, get, scan, id, int64(acct), s.now())
		return err
	})
	return d, taken && err == nil, err
}

// Renew moves the end of leases.
func (s *Store) Renew(ctx context.Context, refs []outbox.Ref, until time.Time) error {
	return s.moveLeases(ctx, "deliveries: renew", refs, until, 1)
}

// Release gives leases back unused.
func (s *Store) Release(ctx context.Context, refs []outbox.Ref, due time.Time) error {
	return s.moveLeases(ctx, "deliveries: release", refs, due, 0)
}

func (s *Store) moveLeases(ctx context.Context, noun string, refs []outbox.Ref, to time.Time, leased int64) error {
	for chunk := range slices.Chunk(refs, chunkSize) {
		if _, err := s.db.Exec(ctx, noun, moveLeases, sqlstore.Millis(to), leased, keys(chunk)); err != nil {
			return err
		}
	}
	return nil
}

// Held returns the lines of what waits for breakers.
func (s *Store) Held(ctx context.Context) ([]outbox.Line, error) {
	return sqlstore.List(ctx, s.db, "deliveries that wait for breakers", parked, scanLine)
}

func scanLine(row *sql.Rows, l *outbox.Line) error {
	var acct, first int64
	err := row.Scan(&acct, &l.Endpoint, &l.Count, &first)
	l.Account, l.First = account.ID(acct), sqlstore.Moment(first)
	return err
}

// Take leases deliveries of a line.
func (s *Store) Take(ctx context.Context, line outbox.Line, n int, before, until time.Time) (ds []outbox.Delivery, err error) {
	most := int64(math.MaxInt64)
	if !before.IsZero() {
		most = sqlstore.Millis(before)
	}
	err = s.db.Write(ctx, "deliveries: take", func(ctx context.Context, tx *sqlstore.Tx) error {
		ds, err = sqlstore.List(ctx, tx, "deliveries: take", lockParked, scan, int64(line.Account), line.Endpoint, most, int64(min(n, chunkSize)))
		if err != nil || len(ds) == 0 {
			return err
		}
		_, err = tx.Exec(ctx, "deliveries: take", take, sqlstore.Millis(until), keysOf(ds))
		return err
	})
	if err != nil {
		return nil, err
	}
	for i := range ds {
		ds[i].NextAttemptAt, ds[i].Waits = until, ""
	}
	return ds, nil
}
