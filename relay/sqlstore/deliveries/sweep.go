package deliveries

import (
	"context"
	"slices"

	"github.com/penstock/penstock/relay/outbox"
	"github.com/penstock/penstock/relay/sqlstore"
)

// sweepMost is how many expired deliveries one transaction deletes.
const sweepMost = 5000

const (
	// expiredDead finds by the time of expiry; expired by that of creation, which
	// needs no index more: what was created so late has not expired.
	expiredDead = `SELECT id, account FROM delivery
WHERE state = 'dead' AND expires > 0 AND expires <= $1 ORDER BY expires LIMIT $2 {skip locked}`

	expired = `SELECT id, account FROM delivery
WHERE state = $1 AND created <= $2 AND expires > 0 AND expires <= $3 ORDER BY created LIMIT $4 {skip locked}`

	remove = `DELETE FROM delivery WHERE (id, account) IN (SELECT id, account FROM batch)
RETURNING state`
)

// Sweep deletes the deliveries that have expired.
func (s *Store) Sweep(ctx context.Context) error {
	now, most := s.now(), int64(sweepMost)
	if err := s.sweep(ctx, expiredDead, now, most); err != nil {
		return err
	}
	created := sqlstore.Millis(s.db.Now().Add(-s.db.Retention()))
	for _, state := range []outbox.State{outbox.Delivered, outbox.Simulated} {
		if err := s.sweep(ctx, expired, string(state), created, now, most); err != nil {
			return err
		}
	}
	return nil
}

// sweep deletes what a query finds, until it finds less than it may.
func (s *Store) sweep(ctx context.Context, query string, args ...any) error {
	for n := sweepMost; n == sweepMost; {
		err := s.db.Write(ctx, "deliveries: sweep", func(ctx context.Context, tx *sqlstore.Tx) error {
			refs, err := sqlstore.List(ctx, tx, "deliveries: sweep", query, scanRef, slices.Clone(args)...)
			if n = len(refs); err != nil || n == 0 {
				return err
			}
			return forget(ctx, tx, keys(refs))
		})
		if err != nil {
			return err
		}
	}
	return nil
}

// forget deletes deliveries that have ended.
func forget(ctx context.Context, tx *sqlstore.Tx, rows *sqlstore.Batch) error {
	if _, err := tx.Exec(ctx, "deliveries: sweep", unsetDead, rows); err != nil {
		return err
	}
	states, err := sqlstore.Values[string](ctx, tx, "deliveries: sweep", remove, rows)
	if err != nil {
		return err
	}
	added := make(map[outbox.State]int64)
	for _, state := range states {
		added[outbox.State(state)]--
	}
	return addEnded(ctx, tx, added)
}
