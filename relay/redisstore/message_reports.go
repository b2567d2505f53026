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
	return ms, wrap("messages: untold", err)
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
