package inbound

import (
	"cmp"
	"context"
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
	const noun = "carrier ids"
	first := sqlstore.FirstOfEach(claims, func(a, b inbound.Claim) int { return cmp.Compare(a.Key, b.Key) })
	b := sqlstore.BatchOf("id text, holder text", first, func(c *inbound.Claim) []any { return []any{c.Key, c.Holder} })
	now := s.db.Now()
	n, err := s.db.Exec(ctx, noun, claimCarrierIDs, now.Add(ttl), now, b)
	if err != nil {
		return nil, err
	}
	held := ours(first)
	if int(n) < len(first) { // rarely: others have some
		if held, err = sqlstore.Map[string, string](ctx, s.db, noun, holdersOfBatch, b); err != nil {
			return nil, err
		}
		if len(held) < len(first) { // one has expired since
			return s.Claim(ctx, claims, ttl)
		}
	}
	out := make([]string, len(claims))
	for i, c := range claims {
		out[i] = held[c.Key]
	}
	return out, nil
}

// ours is claims as they are held once all were taken.
func ours(claims []inbound.Claim) map[string]string {
	held := make(map[string]string, len(claims))
	for _, c := range claims {
		held[c.Key] = c.Holder
	}
	return held
}

// Holder returns the holder of a key, "" if there is none.
func (s *Store) Holder(ctx context.Context, key string) (string, error) {
	return sqlstore.OrZero(sqlstore.Value[string](ctx, s.db, "carrier id "+key, holderOfCarrierID, key, s.db.Now()))
}
