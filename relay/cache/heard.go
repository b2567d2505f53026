package cache

import (
	"context"
	"slices"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/penstock/penstock/relay"
	"github.com/penstock/penstock/relay/iot"
)

// heardKept is the time that an account's times are kept after the last change.
const heardKept = 7 * 24 * time.Hour

// SetHeard keeps when devices were heard last; scores only grow.
func (c *IoT) SetHeard(ctx context.Context, times map[relay.AccountID]map[string]time.Time) error {
	var sets []raised
	for acct, devices := range times {
		sets = append(sets, raised{keyHeard(acct), scores(devices)})
	}
	return c.raise(ctx, sets)
}

// FillHeard caches the reading store's result and the time of the query.
func (c *IoT) FillHeard(ctx context.Context, acct relay.AccountID, timesByID map[string]time.Time, asOf time.Time) error {
	if err := c.raise(ctx, []raised{{keyHeard(acct), scores(timesByID)}}); err != nil {
		return err
	}
	times := make(map[string]time.Time, len(timesByID))
	for id := range timesByID {
		times[id] = asOf
	}
	return c.raise(ctx, []raised{{keyHeardFilled(acct), scores(times)}})
}

// raised are scores of a sorted set that are to be raised.
type raised struct {
	key     string
	members []redis.Z
}

func (c *IoT) raise(ctx context.Context, sets []raised) error {
	var raiseds []raised // members of a set in one round trip
	for _, set := range sets {
		for members := range slices.Chunk(set.members, atOnce) {
			raiseds = append(raiseds, raised{set.key, members})
		}
	}
	for len(raiseds) > 0 {
		n, members := 0, 0
		for n < len(raiseds) && members < atOnce {
			members, n = members+len(raiseds[n].members), n+1
		}
		err := c.db.pipeline(ctx, "when devices were heard", func(p redis.Pipeliner) {
			for _, r := range raiseds[:n] {
				p.ZAddGT(ctx, r.key, r.members...)
				p.Expire(ctx, r.key, heardKept)
			}
		})
		raiseds = raiseds[n:]
		if err != nil {
			return err
		}
	}
	return nil
}

// scores are microseconds since 1970, which a score holds exactly.
func scores(timesByID map[string]time.Time) []redis.Z {
	members := make([]redis.Z, 0, len(timesByID))
	for id, t := range timesByID {
		z := redis.Z{Member: id}
		if !t.IsZero() {
			z.Score = float64(max(0, t.UnixMicro()))
		}
		members = append(members, z)
	}
	return members
}

// Heard returns when devices were heard last.
func (c *IoT) Heard(ctx context.Context, acct relay.AccountID, deviceIDs []string) (map[string]iot.Heard, error) {
	lastHeard := make(map[string]iot.Heard, len(deviceIDs))
	for chunk := range slices.Chunk(deviceIDs, 10*atOnce) {
		var floatSliceCmd, filled *redis.FloatSliceCmd
		err := c.db.pipeline(ctx, "when devices were heard", func(p redis.Pipeliner) {
			floatSliceCmd, filled = p.ZMScore(ctx, keyHeard(acct), chunk...), p.ZMScore(ctx, keyHeardFilled(acct), chunk...)
		})
		if err != nil {
			return nil, err
		}
		for i, id := range chunk {
			h := iot.Heard{At: micros(floatSliceCmd.Val()[i]), Filled: micros(filled.Val()[i])}
			if h != (iot.Heard{}) {
				lastHeard[id] = h
			}
		}
	}
	return lastHeard, nil
}

// micros is the time of a score; a missing one is 0.
func micros(score float64) time.Time {
	if score == 0 {
		return time.Time{}
	}
	return time.UnixMicro(int64(score)).UTC()
}
