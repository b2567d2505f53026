package cache

import (
	"context"
	"slices"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/penstock/penstock/relay/account"
	"github.com/penstock/penstock/relay/iot"
)

// IoT is an iot.Cache.
type IoT struct{ db *DB }

// IoT returns the cache of the IoT domain.
func (d *DB) IoT() *IoT { return &IoT{db: d} }

// Claim marks frames as seen, for ttl at least and twice that at most.
func (c *IoT) Claim(ctx context.Context, acct account.ID, frames []iot.Seen, ttl time.Duration) ([]string, error) {
	first := make([]string, 0, len(frames))
	for some := range slices.Chunk(frames, atOnce) {
		records, err := c.seen(ctx, acct, some, ttl, true)
		if err != nil {
			return nil, err
		}
		for i, record := range records {
			if record == "" { // the mark has just ended
				record = some[i].Record
			}
			first = append(first, record)
		}
	}
	return first, nil
}

// Claimed returns which record claimed each frame.
func (c *IoT) Claimed(ctx context.Context, acct account.ID, frames []iot.Seen, ttl time.Duration) ([]string, error) {
	claimed := make([]string, 0, len(frames))
	for some := range slices.Chunk(frames, atOnce) {
		records, err := c.seen(ctx, acct, some, ttl, false)
		if err != nil {
			return nil, err
		}
		claimed = append(claimed, records...)
	}
	return claimed, nil
}

// seen looks up marks; claim sets those that are missing before.
func (c *IoT) seen(ctx context.Context, acct account.ID, frames []iot.Seen, ttl time.Duration, claim bool) ([]string, error) {
	now := c.db.now()
	current := spanAt(now, ttl)
	shards := byShard(frames)
	err := c.db.pipeline(ctx, "frames seen", func(p redis.Pipeliner) {
		for n, s := range shards {
			key := keySeen(acct, n, current)
			if claim {
				for i, field := range s.fields {
					p.HSetNX(ctx, key, field, frames[s.frames[i]].Record)
				}
				p.PExpire(ctx, key, current.ends().Sub(now))
			}
			s.before = p.HMGet(ctx, keySeen(acct, n, current.before()), s.fields...)
			s.now = p.HMGet(ctx, key, s.fields...)
		}
	})
	if err != nil {
		return nil, err
	}
	records := make([]string, len(frames))
	for _, s := range shards {
		for i, at := range s.frames {
			if record, ok := s.before.Val()[i].(string); ok {
				records[at] = record
			} else if record, ok := s.now.Val()[i].(string); ok {
				records[at] = record
			}
		}
	}
	return records, nil
}

// shard is the frames of a batch whose marks are in one hash.
type shard struct {
	frames      []int // indexes into the batch
	fields      []string
	before, now *redis.SliceCmd
}

func byShard(frames []iot.Seen) map[int]*shard {
	out := make(map[int]*shard)
	for i, f := range frames {
		n := shardOf(f.Device, f.Dedup)
		s := out[n]
		if s == nil {
			s = &shard{}
			out[n] = s
		}
		s.frames, s.fields = append(s.frames, i), append(s.fields, f.Device+"|"+f.Dedup)
	}
	return out
}
