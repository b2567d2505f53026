package redisstore

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"github.com/redis/go-redis/v9"

	"github.com/penstock/penstock/relay/account"
	"github.com/penstock/penstock/relay/sim"
)

// Subscribers keeps subscribers; it is a sim.Subscribers.
type Subscribers struct{ db *DB }

// Subscribers returns the store of subscribers.
func (d *DB) Subscribers() *Subscribers { return &Subscribers{db: d} }

// Get loads a subscriber.
func (s *Subscribers) Get(ctx context.Context, acct account.ID, id string) (sim.Subscriber, error) {
	return field[sim.Subscriber](ctx, s.db, "subscriber", keySubscribers(acct), id)
}

// putSubscriber saves a new subscriber and the members of its list.
//
//	KEYS  1 subscribers  2… sorted sets
//	ARGV  1 id  2 JSON  3… the member of each set
//	result 1
func putSubscriber() *redis.Script {
	return redis.NewScript(`
redis.call('HSET', KEYS[1], ARGV[1], ARGV[2])
for i = 2, #KEYS do redis.call('ZADD', KEYS[i], 0, ARGV[i + 1]) end
return 1`)
}

// Put saves a new subscriber.
func (s *Subscribers) Put(ctx context.Context, acct account.ID, who sim.Subscriber) error {
	c := call{keys: []string{keySubscribers(acct)}, args: []any{who.ID, encode(who)}}
	l := s.listing(acct)
	row := []string{who.ID, folded(who.Forename), folded(who.Surname)}
	for i, column := range l.columns {
		c.keys = append(c.keys, l.key(column))
		c.args = append(c.args, member(i, row))
	}
	_, err := s.db.eval(ctx, putSubscriber(), []call{c})
	return wrap("subscriber "+who.ID, err)
}

// folded is a name without regard to case.
func folded(name string) string { return strings.ToLower(name) }

func (s *Subscribers) listing(acct account.ID) listing {
	return listing{
		db: s.db, columns: sim.SubscriberColumns(),
		key: func(column string) string { return keySubscribersBy(acct, column) },
	}
}

// List returns a page of an account's subscribers.
func (s *Subscribers) List(ctx context.Context, acct account.ID, q sim.Query) ([]sim.Subscriber, int, error) {
	q.Filters = slices.Clone(q.Filters)
	for i := range q.Filters {
		q.Filters[i].Value = folded(q.Filters[i].Value)
	}
	ids, total, err := s.listing(acct).page(ctx, q)
	if err != nil || len(ids) == 0 {
		return nil, total, err
	}
	found, err := s.db.rdb.HMGet(ctx, keySubscribers(acct), ids...).Result()
	if err != nil {
		return nil, 0, wrap("subscribers", err)
	}
	out := make([]sim.Subscriber, 0, len(found))
	for i, v := range found {
		text, _ := v.(string)
		var who sim.Subscriber
		if err := json.Unmarshal([]byte(text), &who); err != nil {
			return nil, 0, fmt.Errorf("subscriber %s: %w", ids[i], err)
		}
		out = append(out, who)
	}
	return out, total, nil
}
