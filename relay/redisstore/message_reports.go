package redisstore

import (
	"context"
	"errors"
	"strconv"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/penstock/penstock/relay/account"
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
		err = s.tell(ctx, gone(refs, ms)) // the others wait behind them
	}
	return ms, wrap("messages: untold", err)
}

// gone are those of the messages that are not there, in their order.
func gone(refs []message.Ref, there []message.Message) (out []message.Message) {
	for _, r := range refs {
		if len(there) > 0 && there[0].Ref() == r {
			there = there[1:]
			continue
		}
		out = append(out, message.Message{Account: r.Account, ID: r.ID})
	}
	return out
}

// Told takes messages off those with something to report.
func (s *Messages) Told(ctx context.Context, ms []message.Message) error {
	return wrap("messages: told", s.tell(ctx, ms))
}

func (s *Messages) tell(ctx context.Context, ms []message.Message) error {
	var calls []call
	for _, places := range groups(ms, func(m *message.Message) account.ID { return m.Account }) {
		acct := ms[places[0]].Account
		c := call{keys: []string{keyMessagesUntold(acct), keyMessageParts(acct)}}
		for _, i := range places {
			c.args = append(c.args, int64(ms[i].ID), ms[i].Version)
		}
		calls = append(calls, c)
	}
	_, err := s.db.eval(ctx, s.told, calls)
	return err
}

// Forget removes messages whose time is over. What one account's are refused for
// keeps no other's.
func (s *Messages) Forget(ctx context.Context, now time.Time) error {
	accounts, err := s.accounts(ctx)
	if err != nil || len(accounts) == 0 {
		return wrap("messages: forget", err)
	}
	over := make([]*redis.IntCmd, len(accounts))
	_, err = s.db.rdb.Pipelined(ctx, func(p redis.Pipeliner) error {
		for i, acct := range accounts {
			over[i] = p.ZCount(ctx, keyMessagesEnded(acct), "-inf", strconv.FormatInt(now.UnixMilli(), 10))
		}
		return nil
	})
	for i, acct := range accounts {
		if over[i].Val() > 0 {
			err = errors.Join(err, s.forgetOf(ctx, acct, now))
		}
	}
	return wrap("messages: forget", err)
}

func (s *Messages) forgetOf(ctx context.Context, acct account.ID, now time.Time) error {
	c := call{
		keys: []string{
			keyMessagesEnded(acct), keyMessagesAll(acct), keyMessagesUntold(acct),
			keyMessages(acct), keyMessageParts(acct), keyMessageNotes(acct),
		},
		args: []any{now.UnixMilli(), maxOfCall},
	}
	for {
		out, err := s.db.eval(ctx, s.forget, []call{c})
		if err != nil {
			return err
		}
		if n, _ := out[0].Int(); n < maxOfCall {
			return nil
		}
	}
}
