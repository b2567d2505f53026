package cache

import (
	"cmp"
	"context"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/penstock/penstock/relay"
	"github.com/penstock/penstock/relay/iot"
)

// IoT is an iot.Cache.
type IoT struct{ db *DB }

// IoT returns the cache of the IoT domain.
func (d *DB) IoT() *IoT { return &IoT{db: d} }

// Claim marks frames as seen, for ttl at least and twice that at most.
func (c *IoT) Claim(ctx context.Context, frames []iot.Seen, ttl time.Duration) ([]string, error) {
	texts, err := c.seen(ctx, frames, ttl, true)
	for i := range texts {
		texts[i] = cmp.Or(texts[i], frames[i].Record) // empty if the mark has just ended
	}
	return texts, err
}

// Claimed returns which record claimed each frame.
func (c *IoT) Claimed(ctx context.Context, frames []iot.Seen, ttl time.Duration) ([]string, error) {
	return c.seen(ctx, frames, ttl, false)
}

// seen looks up marks; claim sets those that are missing before.
func (c *IoT) seen(ctx context.Context, frames []iot.Seen, ttl time.Duration, claim bool) ([]string, error) {
	return inChunks(frames, func(chunk []iot.Seen) ([]string, error) { return c.lookUp(ctx, chunk, ttl, claim) })
}

// lookUp is seen in one round trip, and one more for marks that were there.
func (c *IoT) lookUp(ctx context.Context, frames []iot.Seen, ttl time.Duration, claim bool) ([]string, error) {
	now := c.db.now()
	current := c.db.seen.at(now, ttl)
	shards := byShard(frames, current)
	err := c.db.pipeline(ctx, "frames seen", func(p redis.Pipeliner) {
		for _, s := range shards {
			if claim {
				for i, field := range s.fields {
					s.claimed[i] = p.HSetNX(ctx, s.key, field, markOf(frames[s.frames[i]]))
				}
				p.PExpire(ctx, s.key, current.ends().Sub(now))
			}
			s.oldSliceCmd = p.HMGet(ctx, s.keyBefore, s.fields...)
		}
	})
	if err == nil {
		err = c.others(ctx, frames, shards)
	}
	if err != nil {
		return nil, err
	}
	if claim {
		c.forget(ctx, shards)
	}
	records := make([]string, len(frames))
	for _, s := range shards {
		s.holders(frames, records, claim)
	}
	return records, c.renew(ctx, shards)
}

// forget deletes marks where more are set than may be kept; those that it cannot, the
// next claim deletes.
func (c *IoT) forget(ctx context.Context, shards []*shard) {
	keys, marks := make([]string, len(shards)), 0
	for i, s := range shards {
		keys[i], marks = s.key, marks+len(s.fields)-len(s.missing)
	}
	for chunk := range slices.Chunk(c.db.seen.count(keys, marks), atOnce) {
		err := c.db.pipeline(ctx, "frames seen", func(p redis.Pipeliner) {
			for _, key := range chunk {
				p.Del(ctx, key)
			}
		})
		if err != nil {
			c.db.seen.again(chunk)
		}
	}
}

// others reads the marks that were there before a claim, and sets those that it made:
// nearly all, so that they are not read back.
func (c *IoT) others(ctx context.Context, frames []iot.Seen, shards []*shard) error {
	var some []*shard
	for _, s := range shards {
		for i, set := range s.claimed {
			if set != nil && set.Val() {
				s.now[i] = markOf(frames[s.frames[i]])
			} else {
				s.missing, s.missingAt = append(s.missing, s.fields[i]), append(s.missingAt, i)
			}
		}
		if len(s.missing) > 0 {
			some = append(some, s)
		}
	}
	if len(some) == 0 {
		return nil
	}
	found := make([]*redis.SliceCmd, len(some))
	err := c.db.pipeline(ctx, "frames seen", func(p redis.Pipeliner) {
		for n, s := range some {
			found[n] = p.HMGet(ctx, s.key, s.missing...)
		}
	})
	if err != nil {
		return err
	}
	for n, s := range some {
		for i, mark := range found[n].Val() {
			s.now[s.missingAt[i]], _ = mark.(string)
		}
	}
	return nil
}

// holders finds the record that holds each frame of a shard. A claim takes the place of
// a mark of another frame of the same name; and the mark of the span before, if there
// is one, takes that of the claim, so that a frame has the same holder as long as it is
// remembered: the holder itself may come again, and must not find another one.
func (s *shard) holders(frames []iot.Seen, records []string, claim bool) {
	for i, offset := range s.frames {
		f := frames[offset]
		prefix, _ := s.oldSliceCmd.Val()[i].(string)
		for _, mark := range [...]string{s.renewed[s.fields[i]], prefix, s.now[i]} {
			if mark != "" && records[offset] == "" {
				records[offset] = holder(f, mark)
			}
		}
		switch {
		case !claim:
		case records[offset] == "" && f.Span > 0:
			s.renew(s.fields[i], markOf(f))
		case prefix != "" && prefix != s.now[i] && s.renewed[s.fields[i]] == "" && holder(f, prefix) != "":
			s.renew(s.fields[i], prefix)
		}
	}
}

// renew notes a mark that takes another one's place.
func (s *shard) renew(field, mark string) {
	if s.renewed == nil {
		s.renewed = make(map[string]string)
	}
	s.renewed[field] = mark
}

// renew writes the marks that took another one's place. Of two gateways that do
// so at once the later counts: the other's frame may be stored over itself.
func (c *IoT) renew(ctx context.Context, shards []*shard) error {
	if !slices.ContainsFunc(shards, func(s *shard) bool { return len(s.renewed) > 0 }) {
		return nil
	}
	return c.db.pipeline(ctx, "frames seen", func(p redis.Pipeliner) {
		for _, s := range shards {
			if len(s.renewed) > 0 {
				p.HSet(ctx, s.key, s.renewed)
			}
		}
	})
}

// markOf returns the value under a frame's name: its record, and before that its time where
// the name may come again.
func markOf(f iot.Seen) string {
	if f.Span == 0 {
		return f.Record
	}
	return strconv.FormatInt(f.At.UnixNano(), 10) + "|" + f.Record
}

// holder is the record of a mark; empty if it is that of another frame.
func holder(f iot.Seen, mark string) string {
	path, record, timed := strings.Cut(mark, "|")
	if f.Span == 0 || !timed {
		return mark
	}
	ns, err := strconv.ParseInt(path, 10, 64)
	switch {
	case err != nil:
		return mark
	case f.Near(time.Unix(0, ns)):
		return record
	}
	return ""
}

// shard is the frames of a batch whose marks are in one hash.
type shard struct {
	key, keyBefore string // in the current span and in the one before
	frames         []int  // indexes into the batch
	fields         []string
	claimed        []*redis.BoolCmd // whether the claim set the mark; nil if nothing is claimed
	oldSliceCmd    *redis.SliceCmd
	now            []string // marks in the current span; empty: none
	// missing are the fields whose marks are not known, and their indexes.
	missing   []string
	missingAt []int
	renewed   map[string]string // field → mark that takes another's place
}

func byShard(frames []iot.Seen, current span) []*shard {
	type place struct {
		acct   relay.AccountID
		number int
	}
	places, sizes := make([]place, len(frames)), make(map[place]int, seenShards)
	for i, f := range frames {
		places[i] = place{f.Account, shardOf(f.Device, f.Dedup)}
		sizes[places[i]]++
	}
	by, out := make(map[place]*shard, len(sizes)), make([]*shard, 0, len(sizes))
	for i, f := range frames {
		p := places[i]
		s := by[p]
		if s == nil {
			size := sizes[p]
			s = &shard{
				key: keySeen(p.acct, p.number, current), keyBefore: keySeen(p.acct, p.number, current.before()),
				frames: make([]int, 0, size), fields: make([]string, 0, size), claimed: make([]*redis.BoolCmd, size), now: make([]string, size),
			}
			by[p], out = s, append(out, s)
		}
		s.frames, s.fields = append(s.frames, i), append(s.fields, f.Device+"|"+f.Dedup)
	}
	return out
}
