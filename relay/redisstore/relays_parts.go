package redisstore

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strconv"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/penstock/penstock/relay/inbound"
)

// Parts keeps the parts of messages; it is an inbound.Parts.
type Parts struct{ db *DB }

// Parts returns the store of parts.
func (d *DB) Parts() *Parts { return &Parts{db: d} }

// Add takes parts in, in order, in one round trip.
func (s *Parts) Add(ctx context.Context, parts []inbound.Arrival, t inbound.Times) ([]inbound.Added, error) {
	calls := make([]call, len(parts))
	for i, p := range parts {
		calls[i] = call{
			keys: append(groupKeys(p.Group), keyPartParked(p.Group, p.Message.ID)),
			args: append(timesOf(t), p.Group, p.Number, p.Total, p.Digest, p.Message.ID, encode(p.Message)),
		}
	}
	out, err := s.db.eval(ctx, addPart(), calls)
	if err != nil {
		return nil, wrap("parts", err)
	}
	added := make([]inbound.Added, len(parts))
	for i, cmd := range out {
		answer, err := cmd.StringSlice()
		if err != nil || len(answer) != 3 {
			return nil, wrap("parts", cmp.Or(err, fmt.Errorf("answer %q", answer)))
		}
		added[i] = inbound.Added{State: inbound.PartState(answer[0]), Holder: answer[1]}
		if answer[2] == "" {
			continue
		}
		if added[i].Group, err = gathered(parts[i].Group, answer[1], answer[2]); err != nil {
			return nil, err
		}
	}
	return added, nil
}

func gathered(group, id, text string) (inbound.Gathered, error) {
	g := inbound.Gathered{Group: group, ID: id}
	if err := json.Unmarshal([]byte(text), &g.Parts); err != nil {
		return g, fmt.Errorf("parts of %s: %w", id, err)
	}
	return g, nil
}

// timesOf are the first arguments of the scripts: ms of now, of the end of the
// lease, of the wait.
func timesOf(t inbound.Times) []any {
	return []any{t.Now.UnixMilli(), t.Now.Add(t.Lease).UnixMilli(), t.Wait.Milliseconds()}
}

// groupKeys are the first keys of the scripts.
func groupKeys(group string) []string {
	return []string{keyPartsOpen(group), keyPartsFinished(group), keyPartsDue(shardOf(group)), keyPartsReady(shardOf(group))}
}

// Due hands out groups that must go on now, oldest first in each shard.
func (s *Parts) Due(ctx context.Context, t inbound.Times, limit int) ([]inbound.Gathered, error) {
	found := make([]*redis.StringSliceCmd, partShards)
	until := strconv.FormatInt(t.Now.UnixMilli(), 10)
	_, err := s.db.rdb.Pipelined(ctx, func(p redis.Pipeliner) error {
		for shard := range partShards {
			found[shard] = p.ZRangeByScore(ctx, keyPartsDue(shard), &redis.ZRangeBy{Min: "-inf", Max: until, Count: int64(limit)})
		}
		return nil
	})
	if err != nil {
		return nil, wrap("parts", err)
	}
	var members []string
	for _, cmd := range found {
		members = append(members, cmd.Val()...)
	}
	return s.take(ctx, members[:min(len(members), limit)], t)
}

// take leases the groups that nobody else has taken meanwhile.
func (s *Parts) take(ctx context.Context, members []string, t inbound.Times) ([]inbound.Gathered, error) {
	calls := make([]call, len(members))
	groups := make([]string, len(members))
	for i, m := range members {
		groups[i] = groupOfMember(m)
		calls[i] = call{keys: groupKeys(groups[i]), args: append(timesOf(t), groups[i], m)}
	}
	out, err := s.db.eval(ctx, takeGroup(), calls)
	if err != nil {
		return nil, wrap("parts", err)
	}
	var all []inbound.Gathered
	for i, cmd := range out {
		answer, err := cmd.StringSlice()
		if err != nil || len(answer) != 2 {
			return nil, wrap("parts", cmp.Or(err, fmt.Errorf("answer %q", answer)))
		}
		if answer[1] == "" {
			continue // somebody else has it, or it repeats what has gone on
		}
		g, err := gathered(groups[i], answer[0], answer[1])
		if err != nil {
			return nil, err
		}
		all = append(all, g)
	}
	return all, nil
}

// End forgets groups that have gone on.
func (s *Parts) End(ctx context.Context, all []inbound.Gathered) error {
	_, err := s.db.rdb.Pipelined(ctx, func(p redis.Pipeliner) error {
		for _, g := range all {
			shard, member := shardOf(g.Group), memberReady(g.Group, g.ID)
			p.HDel(ctx, keyPartsReady(shard), member)
			p.ZRem(ctx, keyPartsDue(shard), member)
		}
		return nil
	})
	return wrap("parts", err)
}

// Park keeps a group for the event that it is noted at.
func (s *Parts) Park(ctx context.Context, g inbound.Gathered, keep time.Duration) error {
	value := g.ID + "|" + encode(g.Parts)
	return wrap("parts", s.db.rdb.Set(ctx, keyPartParked(g.Group, g.Event), value, keep).Err())
}

// Whole returns the id of the message that a part has become part of.
func (s *Parts) Whole(ctx context.Context, group, part string) (string, error) {
	id, err := s.db.rdb.HGet(ctx, keyPartsFinished(group), "of:"+part).Result()
	if errors.Is(err, redis.Nil) {
		return "", nil
	}
	return id, wrap("parts", err)
}

// Unpark forgets it.
func (s *Parts) Unpark(ctx context.Context, g inbound.Gathered) error {
	return wrap("parts", s.db.rdb.Del(ctx, keyPartParked(g.Group, g.Event)).Err())
}
