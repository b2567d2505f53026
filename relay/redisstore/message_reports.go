package redisstore

import (
	"context"
	"strconv"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/penstock/penstock/relay/message"
)

// Untold returns messages with something to report.
func (s *Messages) Untold(ctx context.Context, before time.Time, limit int) ([]message.Message, error) {
	accounts, err := s.accounts(ctx)
	if err != nil || len(accounts) == 0 {
		return nil, wrap("messages: untold", err)
	}
	cmds := make([]*redis.StringSliceCmd, len(accounts))
	_, err = s.db.rdb.Pipelined(ctx, func(p redis.Pipeliner) error {
		for i, acct := range accounts {
			cmds[i] = p.ZRangeByScore(ctx, keyMessagesUntold(acct), &redis.ZRangeBy{
				Min: "-inf", Max: strconv.FormatInt(before.UnixMilli(), 10), Count: int64(limit),
			})
		}
		return nil
	})
	if err != nil {
		return nil, wrap("messages: untold", err)
	}
	var refs []message.Ref
	for i, c := range cmds {
		for _, text := range c.Val() {
			if id, ok := message.ParseID(text); ok && len(refs) < limit {
				refs = append(refs, message.Ref{Account: accounts[i], ID: id})
			}
		}
	}
	ms, err := s.load(ctx, refs)
	if err == nil && len(ms) < len(refs) {
		err = s.forget(ctx, refs, ms)
	}
	return ms, wrap("messages: untold", err)
}

// forget takes messages off the list that have expired: the others wait behind
// them.
func (s *Messages) forget(ctx context.Context, refs []message.Ref, there []message.Message) error {
	var calls []call
	for _, r := range refs {
		if len(there) > 0 && there[0].Ref() == r { // they are in the order of refs
			there = there[1:]
			continue
		}
		calls = append(calls, call{
			keys: []string{keyMessage(r.Account, r.ID), keyMessagesUntold(r.Account)}, args: []any{int64(r.ID), ""},
		})
	}
	_, err := s.db.eval(ctx, s.told, calls)
	return err
}

// Told takes messages off those with something to report.
func (s *Messages) Told(ctx context.Context, ms []message.Message) error {
	calls := make([]call, len(ms))
	for i := range ms {
		m := &ms[i]
		calls[i] = call{
			keys: []string{keyMessage(m.Account, m.ID), keyMessagesUntold(m.Account)},
			args: []any{int64(m.ID), m.Version},
		}
	}
	_, err := s.db.eval(ctx, s.told, calls)
	return wrap("messages: told", err)
}
