package redisstore

import (
	"context"
	"slices"
	"strconv"

	"github.com/redis/go-redis/v9"

	"github.com/penstock/penstock/relay/account"
	"github.com/penstock/penstock/relay/outbox"
)

// byMessage are the commands that note deliveries at the message they are
// about. They go before the records: a note without a record says nothing.
func (s *Outbox) byMessage(ctx context.Context, ds []outbox.Delivery) (cmds []redis.Cmder) {
	members := make(map[string][]any)
	var order []string
	for i := range ds {
		id := ds[i].MessageID
		if id == "" {
			continue
		}
		if members[id] == nil {
			order = append(order, id)
		}
		members[id] = append(members[id], owner(ds[i].Account, ds[i].ID))
	}
	for _, id := range order {
		key := keyOutboxMessage(id)
		cmds = append(cmds, redis.NewCmd(ctx, append([]any{"SADD", key}, members[id]...)...),
			redis.NewCmd(ctx, "PEXPIRE", key, s.db.retention.Milliseconds()))
	}
	return cmds
}

// OfMessage returns the deliveries of a message, of all accounts, oldest first:
// those whose records are there, as long as what arrived is kept.
func (s *Outbox) OfMessage(ctx context.Context, messageID string) ([]outbox.Delivery, error) {
	members, err := s.db.rdb.SMembers(ctx, keyOutboxMessage(messageID)).Result()
	if err != nil {
		return nil, wrap("deliveries: of a message", err)
	}
	at := make([]position, 0, len(members))
	for _, m := range members {
		acct, id := splitOwner(m)
		n, err := strconv.ParseInt(acct, 10, 64)
		if err != nil {
			continue // not ours
		}
		at = append(at, position{account: account.ID(n), id: id})
	}
	ds, err := s.load(ctx, at)
	slices.SortFunc(ds, func(a, b outbox.Delivery) int { return a.CreatedAt.Compare(b.CreatedAt) })
	return ds, wrap("deliveries: of a message", err)
}
