package redisstore

import (
	"context"
	"encoding/json"
	"fmt"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/penstock/penstock/relay/account"
	"github.com/penstock/penstock/relay/inbound"
)

// Inbox keeps the messages of desktopsms relays; it is an inbound.Inbox.
type Inbox struct{ db *DB }

// Inbox returns the store of inboxes.
func (d *DB) Inbox() *Inbox { return &Inbox{db: d} }

// keepMessage saves a message unless it was acknowledged.
//
//	KEYS  order, messages, acknowledged
//	ARGV  id, ms of receipt, JSON
//	result 1 saved, 0 there or acknowledged
func keepMessage() *redis.Script {
	return redis.NewScript(`
if redis.call('EXISTS', KEYS[3]) == 1 then return 0 end
if redis.call('HSETNX', KEYS[2], ARGV[1], ARGV[3]) == 0 then return 0 end
redis.call('ZADD', KEYS[1], ARGV[2], ARGV[1])
return 1`)
}

// Keep saves messages that are new, in one round trip.
func (s *Inbox) Keep(ctx context.Context, all []inbound.Kept) error {
	calls := make([]call, len(all))
	for i, k := range all {
		calls[i] = call{
			keys: inboxKeys(k.Account, k.Relay, k.Message.ID),
			args: []any{k.Message.ID, k.Message.ReceivedAt.UnixMilli(), encode(k)},
		}
	}
	_, err := s.db.eval(ctx, keepMessage(), calls)
	return wrap("inbox", err)
}

// acknowledge removes a message and remembers that it was.
//
//	KEYS  order, messages, acknowledged
//	ARGV  id, ms to remember
//	result 1 removed, 0 there was none
func acknowledge() *redis.Script {
	return redis.NewScript(`
if redis.call('HDEL', KEYS[2], ARGV[1]) == 0 then return 0 end
redis.call('ZREM', KEYS[1], ARGV[1])
redis.call('SET', KEYS[3], '1', 'PX', ARGV[2])
return 1`)
}

// Acknowledge removes a message; relay.KindNotFound if there is none.
func (s *Inbox) Acknowledge(ctx context.Context, acct account.ID, relayID, id string, remember time.Duration) error {
	out, err := s.db.eval(ctx, acknowledge(), []call{{
		keys: inboxKeys(acct, relayID, id), args: []any{id, remember.Milliseconds()},
	}})
	if err != nil {
		return wrap("inbox", err)
	}
	if n, err := out[0].Int(); err != nil || n == 0 {
		return wrap("message "+id, redis.Nil)
	}
	return nil
}

// Read returns a run of the messages of a relay, oldest first, and how many
// there are.
func (s *Inbox) Read(ctx context.Context, acct account.ID, relayID string, offset, limit int) ([]inbound.Kept, int, error) {
	order := keyInboxOrder(acct, relayID)
	total, err := s.db.rdb.ZCard(ctx, order).Result()
	if err != nil || total == 0 || limit <= 0 {
		return nil, int(total), wrap("inbox", err)
	}
	ids, err := s.db.rdb.ZRange(ctx, order, int64(offset), int64(offset+limit-1)).Result()
	if err != nil || len(ids) == 0 {
		return nil, int(total), wrap("inbox", err)
	}
	found, err := s.db.rdb.HMGet(ctx, keyInboxMessages(acct, relayID), ids...).Result()
	if err != nil {
		return nil, 0, wrap("inbox", err)
	}
	out := make([]inbound.Kept, 0, len(found))
	for i, v := range found {
		text, ok := v.(string)
		if !ok { // acknowledged between the two commands
			continue
		}
		var k inbound.Kept
		if err := json.Unmarshal([]byte(text), &k); err != nil {
			return nil, 0, fmt.Errorf("message %s: %w", ids[i], err)
		}
		out = append(out, k)
	}
	return out, int(total), nil
}

func inboxKeys(acct account.ID, relayID, id string) []string {
	return []string{keyInboxOrder(acct, relayID), keyInboxMessages(acct, relayID), keyInboxDone(acct, relayID, id)}
}
