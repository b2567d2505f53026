package iot

import (
	"context"
	"fmt"
	"slices"
	"sync"
	"time"

	"github.com/penstock/penstock/decoders"
	"github.com/penstock/penstock/relay"
)

// UnmappedKey is a key that frames have and their decoder does not map.
type UnmappedKey struct {
	Key      string
	LastSeen time.Time
	Count    int64 // readings with the key
}

// MaxUnmappedKeys is how many unmapped keys of a decoder are kept, and UnmappedRetention
// how long after they were seen last.
const (
	MaxUnmappedKeys   = 100
	UnmappedRetention = 30 * 24 * time.Hour
)

// unmappedKeys counts keys without a mapping by decoder, until they are saved. What was
// not saved is lost with the process.
type unmappedKeys struct {
	mu        sync.Mutex
	byDecoder map[Ref]map[string]UnmappedKey
}

// add counts a key of a decoder, unless the decoder has MaxUnmappedKeys others.
func (u *unmappedKeys) add(decoder Ref, k UnmappedKey) {
	keys := u.byDecoder[decoder]
	if keys == nil {
		if u.byDecoder == nil {
			u.byDecoder = make(map[Ref]map[string]UnmappedKey)
		}
		keys = make(map[string]UnmappedKey)
		u.byDecoder[decoder] = keys
	}
	known, counted := keys[k.Key]
	if !counted && len(keys) >= MaxUnmappedKeys {
		return
	}
	k.Count += known.Count
	if known.LastSeen.After(k.LastSeen) {
		k.LastSeen = known.LastSeen
	}
	keys[k.Key] = k
}

// countUnmapped counts the keys of a batch that no decoder maps. Keys are cut to maxKey
// bytes, because some formats do not bound them. It is the last step, so that a batch that
// is processed again counts once.
func (s *Service) countUnmapped(_ context.Context, b *batch) error {
	s.unmapped.mu.Lock()
	defer s.unmapped.mu.Unlock()
	for _, w := range b.all {
		for _, key := range w.unmapped {
			s.unmapped.add(Ref{w.Account, w.device.decoder.ID}, UnmappedKey{Key: decoders.Clip(key, maxKey), LastSeen: w.ReceivedAt.UTC(), Count: 1})
		}
	}
	return nil
}

// SaveUnmapped saves the keys that were counted since the last call. After an error they
// are saved with the next call.
func (s *Service) SaveUnmapped(ctx context.Context) error {
	s.unmapped.mu.Lock()
	counted := s.unmapped.byDecoder
	s.unmapped.byDecoder = nil
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

// How often unmapped keys are saved, and how long the last save may take.
const (
	saveUnmappedEvery = 5 * time.Second
	saveUnmappedLast  = 2 * time.Second
)

// Run saves unmapped keys until ctx is done, and once more then.
func (s *Service) Run(ctx context.Context) {
	ticker := time.NewTicker(saveUnmappedEvery)
	defer ticker.Stop()
	for {
		select {
		case <-ticker.C:
			_ = s.SaveUnmapped(ctx) // tried again; the outage of the database is reported elsewhere
		case <-ctx.Done():
			last, cancel := context.WithTimeout(context.WithoutCancel(ctx), saveUnmappedLast)
			defer cancel()
			_ = s.SaveUnmapped(last)
			return
		}
	}
}

// UnmappedKeys lists the keys that frames have and a decoder does not map, the last seen
// first.
func (s *Service) UnmappedKeys(ctx context.Context, acct relay.AccountID, d Decoder) ([]UnmappedKey, error) {
	keys, err := s.store.Unmapped(ctx, acct, d.ID)
	return slices.DeleteFunc(keys, func(k UnmappedKey) bool {
		return slices.ContainsFunc(d.Sensors, func(m Mapping) bool { return m.Key == k.Key })
	}), err
}
