package cache

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/penstock/penstock/relay/outbox"
)

// breakersTTL is the retention of the breakers after the last change to any of them.
const breakersTTL = 30 * 24 * time.Hour

// Breakers stores the open breakers.
type Breakers struct{ db *DB }

// Breakers returns the store of open breakers.
func (d *DB) Breakers() *Breakers { return &Breakers{db: d} }

// Open saves a breaker that was opened or has changed.
func (s *Breakers) Open(ctx context.Context, b outbox.Breaker) error {
	text, err := json.Marshal(b)
	if err != nil {
		return fmt.Errorf("breaker %s: %w", b.Endpoint, err)
	}
	return s.db.pipeline(ctx, "breaker "+b.Endpoint, func(p redis.Pipeliner) {
		p.HSet(ctx, keyBreakers(), b.Endpoint, text)
		p.Expire(ctx, keyBreakers(), breakersTTL)
	})
}

// Close removes a breaker.
func (s *Breakers) Close(ctx context.Context, endpoint string) error {
	return wrap("breaker "+endpoint, s.db.rdb.HDel(ctx, keyBreakers(), endpoint).Err())
}

// List returns the open breakers by the time of opening.
func (s *Breakers) List(ctx context.Context) ([]outbox.Breaker, error) {
	result, err := s.db.rdb.HGetAll(ctx, keyBreakers()).Result()
	if err != nil {
		return nil, wrap("breakers", err)
	}
	breakers := make([]outbox.Breaker, 0, len(result))
	for endpoint, text := range result {
		var b outbox.Breaker
		if err := json.Unmarshal([]byte(text), &b); err != nil {
			return nil, fmt.Errorf("breaker %s: %w", endpoint, err)
		}
		breakers = append(breakers, b)
	}
	slices.SortFunc(breakers, func(a, b outbox.Breaker) int { return a.OpenedAt.Compare(b.OpenedAt) })
	return breakers, nil
}

// Lost reports whether Redis may lack open breakers: it was emptied after the last call of
// Restored, or that call was more than breakersTTL ago.
func (s *Breakers) Lost(ctx context.Context) (bool, error) {
	n, err := s.db.rdb.Exists(ctx, keyBreakersKept()).Result()
	return n == 0, wrap("breakers", err)
}

// Restored records that Redis has all open breakers.
func (s *Breakers) Restored(ctx context.Context) error {
	return wrap("breakers", s.db.rdb.Set(ctx, keyBreakersKept(), "", breakersTTL).Err())
}
