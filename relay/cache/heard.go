package cache

import (
	"context"
	"slices"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/penstock/penstock/relay"
	"github.com/penstock/penstock/relay/iot"
)

// heardTTL is the retention of the times of an account's devices after the last change.
const heardTTL = 7 * 24 * time.Hour

const heardLabel = "times of last frames"

// SetHeard stores the times of the last frames of devices. A time that is earlier than the stored
// one has no effect.
func (c *IoT) SetHeard(ctx context.Context, times map[relay.AccountID]map[string]time.Time) error {
	var sets []scoreSet
	for acct, devices := range times {
		sets = append(sets, scoreSet{keyHeard(acct), scores(devices)})
	}
	return c.raiseScores(ctx, sets)
}

// FillHeard stores times that were read from the reading store at asOf.
func (c *IoT) FillHeard(ctx context.Context, acct relay.AccountID, timesByID map[string]time.Time, asOf time.Time) error {
	if err := c.raiseScores(ctx, []scoreSet{{keyHeard(acct), scores(timesByID)}}); err != nil {
		return err
	}
	times := make(map[string]time.Time, len(timesByID))
	for id := range timesByID {
		times[id] = asOf
	}
	return c.raiseScores(ctx, []scoreSet{{keyHeardFilled(acct), scores(times)}})
}

type scoreSet struct {
	key     string
	members []redis.Z
}

// raiseScores sets scores that are higher than the stored ones. It sends several small sets in one
// round trip.
func (c *IoT) raiseScores(ctx context.Context, sets []scoreSet) error {
	var chunks []scoreSet
	for _, set := range sets {
		for members := range slices.Chunk(set.members, maxPipelined) {
			chunks = append(chunks, scoreSet{set.key, members})
		}
	}
	for len(chunks) > 0 {
		n, members := 0, 0
		for n < len(chunks) && members < maxPipelined {
			members, n = members+len(chunks[n].members), n+1
		}
		err := c.db.pipeline(ctx, heardLabel, func(p redis.Pipeliner) {
			for _, chunk := range chunks[:n] {
				p.ZAddGT(ctx, chunk.key, chunk.members...)
				p.Expire(ctx, chunk.key, heardTTL)
			}
		})
		if err != nil {
			return err
		}
		chunks = chunks[n:]
	}
	return nil
}

// scores converts times to scores: microseconds since 1970, which a float represents exactly.
func scores(timesByID map[string]time.Time) []redis.Z {
	members := make([]redis.Z, 0, len(timesByID))
	for id, t := range timesByID {
		members = append(members, redis.Z{Member: id, Score: float64(max(0, t.UnixMicro()))}) // 0 for the zero time
	}
	return members
}

// Heard returns the times at which devices were heard last.
func (c *IoT) Heard(ctx context.Context, acct relay.AccountID, deviceIDs []string) (map[string]iot.LastHeard, error) {
	lastHeard := make(map[string]iot.LastHeard, len(deviceIDs))
	for chunk := range slices.Chunk(deviceIDs, 10*maxPipelined) {
		var heardAt, filledAt *redis.FloatSliceCmd
		err := c.db.pipeline(ctx, heardLabel, func(p redis.Pipeliner) {
			heardAt, filledAt = p.ZMScore(ctx, keyHeard(acct), chunk...), p.ZMScore(ctx, keyHeardFilled(acct), chunk...)
		})
		if err != nil {
			return nil, err
		}
		for i, id := range chunk {
			h := iot.LastHeard{HeardAt: timeOf(heardAt.Val()[i]), FilledAt: timeOf(filledAt.Val()[i])}
			if h != (iot.LastHeard{}) {
				lastHeard[id] = h
			}
		}
	}
	return lastHeard, nil
}

// timeOf returns the time of a score; a missing score is 0.
func timeOf(score float64) time.Time {
	if score == 0 {
		return time.Time{}
	}
	return time.UnixMicro(int64(score)).UTC()
}
