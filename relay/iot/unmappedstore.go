package iot

import (
	"cmp"
	"context"
	"maps"
	"slices"
	"time"

	"github.com/penstock/penstock/relay"
	"github.com/penstock/penstock/relay/db"
)

// AddUnmapped adds the counts of unmapped keys. Keys that differ only in what the database
// cannot store (NUL, invalid UTF-8) are counted together.
func (s *Store) AddUnmapped(ctx context.Context, keys map[Ref]map[string]UnmappedKey, before time.Time) error {
	refs := slices.SortedFunc(maps.Keys(keys), func(a, b Ref) int {
		return cmp.Or(cmp.Compare(a.Account, b.Account), cmp.Compare(a.ID, b.ID))
	})
	decoders := db.BatchOf("account, decoder", refs, func(r *Ref) []any { return []any{r.Account, r.ID} })
	// In order, so that gateways that add the same keys do not wait for each other.
	rows := db.NewBatch("account, decoder, key, last_seen, readings")
	for _, r := range refs {
		for _, name := range slices.Sorted(maps.Keys(keys[r])) {
			k := keys[r][name]
			rows.Add(r.Account, r.ID, name, db.Nanos(k.LastSeen), k.Count)
		}
	}
	return s.db.RunAll(ctx, "unmapped keys",
		db.Do(`
DELETE FROM unmapped_key
WHERE (account, decoder) IN (SELECT account, decoder FROM batch)
  AND last_seen < $1`, db.Nanos(before), decoders),
		db.Do(`
INSERT INTO unmapped_key (account, decoder, key, last_seen, readings)
SELECT batch.account, batch.decoder, batch.key, max(batch.last_seen), sum(batch.readings)
FROM batch
JOIN decoder ON decoder.account = batch.account AND decoder.id = batch.decoder
WHERE EXISTS (
    SELECT 1 FROM unmapped_key AS u
    WHERE u.account = batch.account AND u.decoder = batch.decoder AND u.key = batch.key)
  OR (
    SELECT count(*) FROM unmapped_key AS u
    WHERE u.account = batch.account AND u.decoder = batch.decoder) < $1
GROUP BY batch.account, batch.decoder, batch.key
ORDER BY min(batch.n)
ON CONFLICT (account, decoder, key) DO UPDATE
SET last_seen = {greatest}(unmapped_key.last_seen, excluded.last_seen),
    readings = unmapped_key.readings + excluded.readings`, MaxUnmappedKeys, rows))
}

// Unmapped lists the unmapped keys of a decoder, the last seen first.
func (s *Store) Unmapped(ctx context.Context, acct relay.AccountID, decoderID string) ([]UnmappedKey, error) {
	fields := func(k *UnmappedKey) []any { return []any{&k.Key, db.NanoTime(&k.LastSeen), &k.Count} }
	return db.List(ctx, s.db, "unmapped keys of "+decoderID, `
SELECT key, last_seen, readings
FROM unmapped_key
WHERE account = $1 AND decoder = $2
ORDER BY last_seen DESC, key
LIMIT $3`, fields, acct, decoderID, MaxUnmappedKeys)
}
