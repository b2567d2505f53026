package deliveries

import (
	"context"

	"github.com/penstock/penstock/relay/outbox"
	"github.com/penstock/penstock/relay/sqlstore"
)

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
	now := s.db.Now()
	if err := s.sweep(ctx, expiredDead, now, sqlstore.SweepMost); err != nil {
		return err
	}
	for _, state := range []outbox.State{outbox.Delivered, outbox.Simulated} {
		if err := s.sweep(ctx, expired, state, now.Add(-s.db.Retention()), now, sqlstore.SweepMost); err != nil {
			return err
		}
	}
	return nil
}

// sweep deletes what a query finds, until it finds less than it may.
func (s *Store) sweep(ctx context.Context, query string, args ...any) error {
	const noun = "deliveries: sweep"
	return s.db.Repeat(ctx, noun, sqlstore.SweepMost, func(ctx context.Context, tx *sqlstore.Tx) (int, error) {
		refs, err := sqlstore.List(ctx, tx, noun, query, sqlstore.Into(refFields), args...)
		if err != nil {
			return 0, err
		}
		rows := keys(refs)
		if _, err := tx.Exec(ctx, noun, unsetDead, rows); err != nil {
			return 0, err
		}
		states, err := sqlstore.Values[outbox.State](ctx, tx, noun, remove, rows)
		if err != nil {
			return 0, err
		}
		added := make(map[outbox.State]int64)
		for _, state := range states {
			added[state]--
		}
		return len(refs), addEnded(ctx, tx, added)
	})
}
