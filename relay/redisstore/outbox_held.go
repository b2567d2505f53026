package redisstore

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strconv"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/penstock/penstock/relay/outbox"
)

// Held returns the lines of what waits for breakers: two round trips, however
// much waits.
func (s *Outbox) Held(ctx context.Context) ([]outbox.Line, error) {
	lines, err := s.lines(ctx)
	if err != nil || len(lines) == 0 {
		return nil, wrap("deliveries: held", err)
	}
	cmds, err := s.db.rdb.Pipelined(ctx, func(p redis.Pipeliner) error {
		for _, l := range lines {
			p.ZCard(ctx, keyOutboxHeld(l.Account, l.Endpoint))
			p.ZRangeWithScores(ctx, keyOutboxHeld(l.Account, l.Endpoint), 0, 0)
		}
		return nil
	})
	if err != nil {
		return nil, wrap("deliveries: held", err)
	}
	for i := range lines {
		lines[i].Count = int(cmds[2*i].(*redis.IntCmd).Val())
		if first := cmds[2*i+1].(*redis.ZSliceCmd).Val(); len(first) > 0 {
			lines[i].First = time.UnixMilli(int64(first[0].Score)).UTC()
		}
	}
	return lines, nil
}

// lines names the lines of every account.
func (s *Outbox) lines(ctx context.Context) ([]outbox.Line, error) {
	accounts, err := s.accounts(ctx)
	if err != nil || len(accounts) == 0 {
		return nil, err
	}
	cmds, err := s.db.rdb.Pipelined(ctx, func(p redis.Pipeliner) error {
		for _, acct := range accounts {
			p.SMembers(ctx, keyOutboxLines(acct))
		}
		return nil
	})
	if err != nil {
		return nil, err
	}
	var lines []outbox.Line
	for i, c := range cmds {
		for _, endpoint := range c.(*redis.StringSliceCmd).Val() {
			lines = append(lines, outbox.Line{Account: accounts[i], Endpoint: endpoint})
		}
	}
	return lines, nil
}

// Take leases deliveries of a line.
func (s *Outbox) Take(ctx context.Context, line outbox.Line, n int, before, until time.Time) ([]outbox.Delivery, error) {
	most := "+inf"
	if !before.IsZero() {
		most = strconv.FormatInt(before.UnixMilli(), 10)
	}
	out, err := s.db.eval(ctx, s.take, []call{{
		keys: []string{keyOutboxHeld(line.Account, line.Endpoint), keyOutboxLines(line.Account), keyOutboxDue(line.Account)},
		args: []any{line.Endpoint, min(n, chunkSize), most, until.UnixMilli(), keyDelivery(line.Account, "")},
	}})
	if err != nil {
		return nil, wrap("deliveries: take", err)
	}
	ids, err := out[0].StringSlice()
	if err != nil {
		return nil, wrap("deliveries: take", err)
	}
	ps := make([]position, len(ids))
	for i, id := range ids {
		ps[i] = position{id: id, account: line.Account}
	}
	ds, err := s.load(ctx, ps)
	return ds, wrap("deliveries: take", err)
}

// Breakers keeps the breakers that are open; it is an outbox.Breakers.
type Breakers struct{ db *DB }

// Breakers returns the store of open breakers.
func (d *DB) Breakers() *Breakers { return &Breakers{db: d} }

// Open saves that a breaker is open, or what has changed about it.
func (s *Breakers) Open(ctx context.Context, b outbox.Breaker) error {
	return wrap("breaker "+b.Endpoint, setField(ctx, s.db.rdb, keyBreakers(), b.Endpoint, b))
}

// Close forgets a breaker.
func (s *Breakers) Close(ctx context.Context, endpoint string) error {
	return wrap("breaker "+endpoint, s.db.rdb.HDel(ctx, keyBreakers(), endpoint).Err())
}

// List returns the breakers that are open, the first opened first.
func (s *Breakers) List(ctx context.Context) ([]outbox.Breaker, error) {
	all, err := s.db.rdb.HGetAll(ctx, keyBreakers()).Result()
	if err != nil {
		return nil, wrap("breakers", err)
	}
	out := make([]outbox.Breaker, 0, len(all))
	for endpoint, text := range all {
		var b outbox.Breaker
		if err := json.Unmarshal([]byte(text), &b); err != nil {
			return nil, fmt.Errorf("breaker %s: %w", endpoint, err)
		}
		out = append(out, b)
	}
	slices.SortFunc(out, func(a, b outbox.Breaker) int { return a.OpenedAt.Compare(b.OpenedAt) })
	return out, nil
}
