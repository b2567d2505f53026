package redisstore

import (
	"context"
	"errors"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/penstock/penstock/relay/inbound"
)

// Claims remembers carriers' ids; it is an inbound.Claims.
type Claims struct{ db *DB }

// Claims returns the store of carriers' ids.
func (d *DB) Claims() *Claims { return &Claims{db: d} }

// Claim takes each key for its holder, unless another has it, and returns who
// has each. A holder that claims again finds itself: what a crash left half
// done is then finished instead of dropped.
func (s *Claims) Claim(ctx context.Context, claims []inbound.Claim, ttl time.Duration) ([]string, error) {
	held := make([]*redis.StringCmd, len(claims))
	_, err := s.db.rdb.Pipelined(ctx, func(p redis.Pipeliner) error {
		for i, c := range claims {
			p.SetNX(ctx, keyCarrierID(c.Key), c.Holder, ttl)
			held[i] = p.Get(ctx, keyCarrierID(c.Key))
		}
		return nil
	})
	if err != nil && !errors.Is(err, redis.Nil) {
		return nil, wrap("carrier ids", err)
	}
	out := make([]string, len(claims))
	for i, cmd := range held {
		holder, err := cmd.Result()
		if errors.Is(err, redis.Nil) { // it expired between the two commands
			holder, err = claims[i].Holder, nil
		}
		if err != nil {
			return nil, wrap("carrier ids", err)
		}
		out[i] = holder
	}
	return out, nil
}

// Holder returns who has a key, "" for nobody.
func (s *Claims) Holder(ctx context.Context, key string) (string, error) {
	holder, err := s.db.rdb.Get(ctx, keyCarrierID(key)).Result()
	if errors.Is(err, redis.Nil) {
		return "", nil
	}
	return holder, wrap("carrier ids", err)
}
