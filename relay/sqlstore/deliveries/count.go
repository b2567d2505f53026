package deliveries

import (
	"context"
	"database/sql"
	"math/rand/v2"

	"github.com/penstock/penstock/relay/outbox"
	"github.com/penstock/penstock/relay/sqlstore"
)

// countParts is among how many rows the count of a state is spread.
const countParts = 64

const (
	addCounts = `INSERT INTO delivery_count (part, state, ended)
SELECT CAST($1 AS BIGINT), state, added FROM batch WHERE true ORDER BY n
ON CONFLICT (part, state) DO UPDATE SET ended = delivery_count.ended + excluded.ended`

	counts = `SELECT state, CAST(SUM(ended) AS BIGINT) FROM delivery_count GROUP BY state
UNION ALL SELECT state, COUNT(*) FROM delivery WHERE state IN ('queued', 'retrying') GROUP BY state`
)

// Counts returns how many deliveries there are by state. Those under way are few
// enough to be counted; those that have ended are counted when they end, and
// until they are swept.
func (s *Store) Counts(ctx context.Context) (map[outbox.State]int, error) {
	type counted struct {
		state string
		n     int
	}
	all, err := sqlstore.List(ctx, s.db, "deliveries: count", counts, func(row *sql.Rows, c *counted) error {
		return row.Scan(&c.state, &c.n)
	})
	if err != nil {
		return nil, err
	}
	counts := make(map[outbox.State]int)
	for _, state := range outbox.States() {
		counts[state] = 0
	}
	for _, c := range all {
		counts[outbox.State(c.state)] = c.n
	}
	return counts, nil
}

// addEnded adds to the counts of deliveries that have ended. It is the last of a
// transaction, as others may wait for its row.
func addEnded(ctx context.Context, tx *sqlstore.Tx, added map[outbox.State]int64) error {
	rows := sqlstore.NewBatch("state text, added bigint")
	for _, state := range outbox.States() { // in one order, so that nobody waits in a circle
		if added[state] != 0 {
			rows.Add(string(state), added[state])
		}
	}
	if rows.Len() == 0 {
		return nil
	}
	_, err := tx.Exec(ctx, "deliveries: count", addCounts, rand.Int64N(countParts), rows)
	return err
}
