package redisstore

import (
	"context"
	"errors"

	"github.com/redis/go-redis/v9"

	"github.com/penstock/penstock/relay/account"
	"github.com/penstock/penstock/relay/iot"
)

// Claimed tells which record claimed each frame, and marks nothing.
func (s *IoT) Claimed(ctx context.Context, acct account.ID, frames []iot.Seen) ([]string, error) {
	cmds := make([]*redis.StringCmd, len(frames))
	_, err := s.db.rdb.Pipelined(ctx, func(p redis.Pipeliner) error {
		for i, f := range frames {
			cmds[i] = p.Get(ctx, keySeen(acct, f.Device, f.Dedup))
		}
		return nil
	})
	if err != nil && !errors.Is(err, redis.Nil) {
		return nil, wrap("frames seen", err)
	}
	out := make([]string, len(frames))
	for i, cmd := range cmds {
		if out[i], err = cmd.Result(); err != nil && !errors.Is(err, redis.Nil) {
			return nil, wrap("frames seen", err)
		}
	}
	return out, nil
}
