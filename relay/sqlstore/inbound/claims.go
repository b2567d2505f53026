package inbound

import (
	"cmp"
	"context"
	"database/sql"
	"maps"
	"slices"
	"time"

	"github.com/penstock/penstock/relay/inbound"
	"github.com/penstock/penstock/relay/sqlstore"
)

const (
	claimCarrierIDs = `
INSERT INTO carrier_id (id, holder, expires)
SELECT id, holder, $1 FROM batch WHERE true
ON CONFLICT (id) DO UPDATE SET holder = excluded.holder, expires = excluded.expires
WHERE carrier_id.expires <= $2`

	holdersOfBatch = `
SELECT id, holder FROM carrier_id WHERE id IN (SELECT id FROM batch)`

	holderOfCarrierID = `
SELECT holder FROM carrier_id WHERE id = $1 AND expires > $2`
)

// Claim takes each key for its holder, unless another has it, and returns who
// has each. A holder that claims again finds itself: what a crash left half done
// is then finished instead of dropped.
func (s *Store) Claim(ctx context.Context, claims []inbound.Claim, ttl time.Duration) ([]string, error) {
	if len(claims) == 0 {
		return nil, nil
	}
	const noun = "carrier ids"
	b := firstClaims(claims)
	held := make(map[string]string, b.Len())
	err := s.db.Write(ctx, noun, func(ctx context.Context, tx *sqlstore.Tx) error {
		clear(held)
		now := tx.Now()
		if _, err := tx.Exec(ctx, noun, claimCarrierIDs, sqlstore.Millis(now.Add(ttl)), sqlstore.Millis(now), b); err != nil {
			return err
		}
		all, err := sqlstore.List(ctx, tx, noun, holdersOfBatch, scanClaim, b)
		for _, c := range all {
			held[c.Key] = c.Holder
		}
		return err
	})
	if err != nil {
		return nil, err
	}
	out := make([]string, len(claims))
	for i, c := range claims {
		out[i] = held[c.Key]
	}
	return out, nil
}

// firstClaims is the first claim of each key, in the order of the keys, in which
// every transaction locks them.
func firstClaims(claims []inbound.Claim) *sqlstore.Batch {
	first := make(map[string]inbound.Claim, len(claims))
	for _, c := range slices.Backward(claims) {
		first[c.Key] = c
	}
	b := sqlstore.NewBatch("id text, holder text")
	for _, c := range slices.SortedFunc(maps.Values(first), func(x, y inbound.Claim) int { return cmp.Compare(x.Key, y.Key) }) {
		b.Add(c.Key, c.Holder)
	}
	return b
}

func scanClaim(row *sql.Rows, c *inbound.Claim) error { return row.Scan(&c.Key, &c.Holder) }

// Holder returns who has a key, "" for nobody.
func (s *Store) Holder(ctx context.Context, key string) (string, error) {
	holder, err := sqlstore.Value[string](ctx, s.db, "carrier id "+key, holderOfCarrierID, key, sqlstore.Millis(s.db.Now()))
	if sqlstore.IsNotFound(err) {
		return "", nil
	}
	return holder, err
}
