package iot

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"sync"
	"time"

	"github.com/penstock/penstock/decoders"
	"github.com/penstock/penstock/relay"
	"github.com/penstock/penstock/relay/db"
)

// UnmappedKey is a key of decoded values that the decoder does not map to a sensor type.
type UnmappedKey struct {
	Key      string    `json:"key"`
	LastSeen time.Time `json:"last_seen"` // UTC
	Count    int64     `json:"count"`     // approximate number of readings with the key
}

// MaxUnmappedKeys is the largest number of unmapped keys that are stored for a decoder.
// UnmappedRetention is the time for which a key is stored after its last frame.
const (
	MaxUnmappedKeys   = 100
	UnmappedRetention = 30 * 24 * time.Hour
)

// unmappedKeys counts unmapped keys by decoder until they are saved. Unsaved counts are lost when
// the process ends.
type unmappedKeys struct {
	mu        sync.Mutex
	byDecoder map[Ref]map[string]UnmappedKey
}

// add counts a key of a decoder, unless the decoder has MaxUnmappedKeys other keys.
func (u *unmappedKeys) add(decoder Ref, k UnmappedKey) {
	keys := u.byDecoder[decoder]
	if keys == nil {
		keys = make(map[string]UnmappedKey)
		u.byDecoder[decoder] = keys
	}
	stored, counted := keys[k.Key]
	if !counted && len(keys) >= MaxUnmappedKeys {
		return
	}
	k.Count += stored.Count
	if stored.LastSeen.After(k.LastSeen) {
		k.LastSeen = stored.LastSeen
	}
	keys[k.Key] = k
}

// countUnmapped counts the unmapped keys of a batch. Keys are truncated to maxKey bytes, because some
// formats have no limit. It is the last step of Ingest, so that a batch is counted once although it is
// processed again after an error. Frames that are processed again after a crash, or replayed, are
// counted again.
func (s *Service) countUnmapped(_ context.Context, b *frameBatch) error {
	s.unmapped.mu.Lock()
	defer s.unmapped.mu.Unlock()
	for _, w := range b.frames {
		for _, key := range w.unmapped {
			s.unmapped.add(Ref{w.Account, w.device.decoder.ID}, UnmappedKey{Key: decoders.Clip(key, maxKey), LastSeen: w.ReceivedAt.UTC(), Count: 1})
		}
	}
	return nil
}

// SaveUnmapped saves the keys that were counted since the last call. After an error, the next call
// saves them.
func (s *Service) SaveUnmapped(ctx context.Context) error {
	s.unmapped.mu.Lock()
	counted := s.unmapped.byDecoder
	s.unmapped.byDecoder = make(map[Ref]map[string]UnmappedKey)
	s.unmapped.mu.Unlock()
	if len(counted) == 0 {
		return nil
	}
	err := s.store.AddUnmapped(ctx, counted, s.options.Now().Add(-UnmappedRetention))
	if err == nil {
		return nil
	}
	s.unmapped.mu.Lock()
	defer s.unmapped.mu.Unlock()
	for decoder, keys := range counted {
		for _, k := range keys {
			s.unmapped.add(decoder, k)
		}
	}
	return fmt.Errorf("iot: unmapped keys: %w", err)
}

// saveUnmappedInterval is the interval at which Run saves unmapped keys. lastSaveTimeout limits the
// save at the end of Run.
const (
	saveUnmappedInterval = 5 * time.Second
	lastSaveTimeout      = 2 * time.Second
)

// Run saves unmapped keys periodically until ctx is done, and then once more.
func (s *Service) Run(ctx context.Context) {
	ticker := time.NewTicker(saveUnmappedInterval)
	defer ticker.Stop()
	for {
		select {
		case <-ticker.C:
			_ = s.SaveUnmapped(ctx) // the next call retries; outages of the database are reported elsewhere
		case <-ctx.Done():
			lastCtx, cancel := context.WithTimeout(context.WithoutCancel(ctx), lastSaveTimeout)
			defer cancel()
			_ = s.SaveUnmapped(lastCtx)
			return
		}
	}
}

// UnmappedKeys lists the unmapped keys of a decoder, last seen first. It omits keys that were mapped
// after they were counted.
func (s *Service) UnmappedKeys(ctx context.Context, acct relay.AccountID, d Decoder) ([]UnmappedKey, error) {
	keys, err := s.store.Unmapped(ctx, acct, d.ID)
	return slices.DeleteFunc(keys, func(k UnmappedKey) bool {
		return slices.ContainsFunc(d.Sensors, func(m Mapping) bool { return m.Key == k.Key })
	}), err
}

// AddUnmapped adds counts of unmapped keys to the stored counts. It adds no new keys to a decoder with
// MaxUnmappedKeys keys and ignores missing decoders. It deletes keys of the decoders that were last
// seen before forgetBefore. Keys that differ only in characters that the database cannot store (NUL,
// invalid UTF-8) are counted together.
func (s *Store) AddUnmapped(ctx context.Context, keys map[Ref]map[string]UnmappedKey, forgetBefore time.Time) error {
	const forget = `
		DELETE FROM unmapped_key
		WHERE (account, decoder) IN (SELECT account, decoder FROM batch)
		  AND last_seen < $1`
	const add = `
		INSERT INTO unmapped_key (account, decoder, key, last_seen, readings)
		SELECT batch.account, batch.decoder, batch.key, max(batch.last_seen), sum(batch.readings)
		FROM batch
		JOIN decoder ON decoder.account = batch.account AND decoder.id = batch.decoder
		WHERE EXISTS (
			SELECT 1
			FROM unmapped_key AS u
			WHERE u.account = batch.account AND u.decoder = batch.decoder AND u.key = batch.key)
		  OR (
			SELECT count(*)
			FROM unmapped_key AS u
			WHERE u.account = batch.account AND u.decoder = batch.decoder) < $1
		GROUP BY batch.account, batch.decoder, batch.key
		ORDER BY min(batch.n)
		ON CONFLICT (account, decoder, key) DO UPDATE
		SET last_seen = {greatest}(unmapped_key.last_seen, excluded.last_seen),
		    readings = unmapped_key.readings + excluded.readings`
	refs := slices.SortedFunc(maps.Keys(keys), Ref.compare)
	decoders := db.BatchOf("account, decoder", refs, func(r *Ref) []any { return []any{r.Account, r.ID} })
	// The rows are sorted, so that gateways that add the same keys do not deadlock.
	rows := db.NewBatch("account, decoder, key, last_seen, readings")
	for _, r := range refs {
		for _, name := range slices.Sorted(maps.Keys(keys[r])) {
			k := keys[r][name]
			rows.Add(r.Account, r.ID, name, db.Nanos(k.LastSeen), k.Count)
		}
	}
	return s.db.RunAll(ctx, "unmapped keys",
		db.Do(forget, db.Nanos(forgetBefore), decoders),
		db.Do(add, MaxUnmappedKeys, rows))
}

// Unmapped lists the unmapped keys of a decoder, last seen first.
func (s *Store) Unmapped(ctx context.Context, acct relay.AccountID, decoderID string) ([]UnmappedKey, error) {
	const query = `
		SELECT key, last_seen, readings
		FROM unmapped_key
		WHERE account = $1
		  AND decoder = $2
		ORDER BY last_seen DESC, key
		LIMIT $3`
	fields := func(k *UnmappedKey) []any { return []any{&k.Key, db.NanoTime(&k.LastSeen), &k.Count} }
	return db.List(ctx, s.db, "unmapped keys of "+decoderID, query, fields, acct, decoderID, MaxUnmappedKeys)
}
