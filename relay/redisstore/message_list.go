package redisstore

import (
	"context"
	"slices"
	"strconv"

	"github.com/redis/go-redis/v9"

	"github.com/penstock/penstock/relay/message"
)

// Limits of a list: how many messages are read at a time, and looked through for
// a page.
const (
	listChunk = 500
	listMost  = 20_000
)

// List returns messages of an account, newest first.
func (s *Messages) List(ctx context.Context, f message.Filter) ([]message.Message, message.ID, error) {
	if len(f.IDs) > 0 {
		list, err := s.listed(ctx, f)
		return list, 0, err
	}
	var list []message.Message
	before, looked := f.Before, 0
	for len(list) < f.Limit && looked < listMost {
		refs, err := s.below(ctx, f, before)
		if err != nil {
			return nil, 0, wrap("messages: list", err)
		}
		found, err := s.load(ctx, refs)
		if err != nil {
			return nil, 0, wrap("messages: list", err)
		}
		for i := range found {
			if f.Selects(&found[i]) {
				if list = append(list, found[i]); len(list) == f.Limit {
					return list, found[i].ID, nil
				}
			}
		}
		if len(refs) < listChunk {
			return list, 0, nil
		}
		before = refs[len(refs)-1].ID
		looked += len(refs)
	}
	return list, before, nil
}

// listed returns messages that are named.
func (s *Messages) listed(ctx context.Context, f message.Filter) ([]message.Message, error) {
	refs := make([]message.Ref, len(f.IDs))
	for i, id := range f.IDs {
		refs[i] = message.Ref{Account: f.Account, ID: id}
	}
	list, err := s.load(ctx, refs)
	list = slices.DeleteFunc(list, func(m message.Message) bool { return !f.Selects(&m) })
	return list, wrap("messages: list", err)
}

// below names the next messages with a lower id, all there are if it is 0.
func (s *Messages) below(ctx context.Context, f message.Filter, id message.ID) ([]message.Ref, error) {
	highest := "+inf"
	if id > 0 {
		highest = "(" + id.String()
	}
	texts, err := s.db.rdb.ZRevRangeByScore(ctx, keyMessagesAll(f.Account), &redis.ZRangeBy{
		Min: "-inf", Max: highest, Count: listChunk,
	}).Result()
	refs := make([]message.Ref, 0, len(texts))
	for _, text := range texts {
		n, _ := strconv.ParseInt(text, 10, 64)
		refs = append(refs, message.Ref{Account: f.Account, ID: message.ID(n)})
	}
	return refs, err
}
