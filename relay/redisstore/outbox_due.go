package redisstore

import (
	"cmp"
	"context"
	"slices"
	"strconv"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/penstock/penstock/relay/account"
	"github.com/penstock/penstock/relay/outbox"
)

// Due returns what waits no longer, oldest first: one look at the front of each
// account's set, so that what still waits costs nothing.
func (s *Outbox) Due(ctx context.Context, before time.Time, limit int) ([]outbox.Ref, error) {
	accounts, err := s.accounts(ctx)
	if err != nil || len(accounts) == 0 {
		return nil, wrap("deliveries: due", err)
	}
	cmds := make([]*redis.ZSliceCmd, len(accounts))
	_, err = s.db.rdb.Pipelined(ctx, func(p redis.Pipeliner) error {
		for i, acct := range accounts {
			cmds[i] = p.ZRangeByScoreWithScores(ctx, keyOutboxDue(acct), &redis.ZRangeBy{
				Min: "-inf", Max: strconv.FormatInt(before.UnixMilli(), 10), Count: int64(limit),
			})
		}
		return nil
	})
	if err != nil {
		return nil, wrap("deliveries: due", err)
	}
	return oldest(accounts, cmds, limit), nil
}

func oldest(accounts []account.ID, cmds []*redis.ZSliceCmd, limit int) []outbox.Ref {
	type due struct {
		ref outbox.Ref
		ms  float64
	}
	var all []due
	for i, c := range cmds {
		for _, z := range c.Val() {
			all = append(all, due{outbox.Ref{Account: accounts[i], ID: z.Member.(string)}, z.Score})
		}
	}
	slices.SortStableFunc(all, func(a, b due) int { return cmp.Compare(a.ms, b.ms) })
	refs := make([]outbox.Ref, 0, min(limit, len(all)))
	for _, d := range all[:min(limit, len(all))] {
		refs = append(refs, d.ref)
	}
	return refs
}

// Counts returns how many deliveries there are by state.
func (s *Outbox) Counts(ctx context.Context) (map[outbox.State]int, error) {
	accounts, err := s.accounts(ctx)
	if err != nil {
		return nil, wrap("deliveries: count", err)
	}
	counts := make(map[outbox.State]int)
	if len(accounts) == 0 {
		return counts, nil
	}
	states := outbox.States()
	cmds, err := s.db.rdb.Pipelined(ctx, func(p redis.Pipeliner) error {
		for _, acct := range accounts {
			for _, state := range states {
				p.ZCard(ctx, keyOutboxState(acct, state))
			}
		}
		return nil
	})
	if err != nil {
		return nil, wrap("deliveries: count", err)
	}
	for i, c := range cmds {
		counts[states[i%len(states)]] += int(c.(*redis.IntCmd).Val())
	}
	return counts, nil
}

// Sweep drops from the lists what has expired, oldest first. Records of one
// state expire about in the order of their creation, so it stops at the first
// chunk that has nothing to drop.
func (s *Outbox) Sweep(ctx context.Context) error {
	accounts, err := s.accounts(ctx)
	if err != nil {
		return wrap("deliveries: sweep", err)
	}
	for _, acct := range accounts {
		for _, state := range outbox.States() {
			if !state.Ended() {
				continue
			}
			if err := s.sweepState(ctx, acct, state); err != nil {
				return wrap("deliveries: sweep", err)
			}
		}
	}
	return nil
}

func (s *Outbox) sweepState(ctx context.Context, acct account.ID, state outbox.State) error {
	for {
		ids, err := s.db.rdb.ZRange(ctx, keyOutboxState(acct, state), 0, chunkSize-1).Result()
		if err != nil {
			return err
		}
		calls := make([]call, len(ids))
		for i, id := range ids {
			calls[i] = call{
				keys: []string{keyDelivery(acct, id), keyOutboxCreated(acct), keyOutboxState(acct, state)},
				args: []any{id},
			}
		}
		out, err := s.db.eval(ctx, s.sweep, calls)
		if err != nil {
			return err
		}
		if len(indexes(out, 1)) == 0 || len(ids) < chunkSize {
			return nil
		}
	}
}
