package redisstore

import (
	"cmp"
	"context"
	"errors"
	"maps"
	"slices"
	"strings"

	"github.com/redis/go-redis/v9"

	"github.com/penstock/penstock/relay"
	"github.com/penstock/penstock/relay/account"
	"github.com/penstock/penstock/relay/inbound"
)

// Relays keeps the relays of inbound messages; it is an inbound.Relays.
type Relays struct{ db *DB }

// Relays returns the store of relays.
func (d *DB) Relays() *Relays { return &Relays{db: d} }

// putRelay saves a relay unless another one has its number or prefix, lets go
// of the number it had before, and counts the version up.
//
//	KEYS  routes of the kind, relays of the account, version
//	ARGV  number, "<account>/<id>", "<kind>/<id>", JSON
//	result "" saved, else the "<account>/<id>" that has the number
func putRelay() *redis.Script {
	return redis.NewScript(`
local holder = redis.call('HGET', KEYS[1], ARGV[1])
if holder and holder ~= ARGV[2] then return holder end
local old = redis.call('HGET', KEYS[2], ARGV[3])
if old then
  local number = cjson.decode(old).number
  if number ~= ARGV[1] then redis.call('HDEL', KEYS[1], number) end
end
redis.call('HSET', KEYS[1], ARGV[1], ARGV[2])
redis.call('HSET', KEYS[2], ARGV[3], ARGV[4])
redis.call('INCR', KEYS[3])
return ''`)
}

// Put saves a relay. It returns relay.KindConflict, with the field number or
// prefix in the message, if another relay has the number or prefix.
func (s *Relays) Put(ctx context.Context, r inbound.Relay) error {
	out, err := s.db.eval(ctx, putRelay(), []call{{
		keys: []string{keyRoutes(string(r.Kind)), keyRelays(r.Account), keyRelaysVersion()},
		args: []any{r.Number, owner(r.Account, r.ID), relayField(r.Kind, r.ID), encode(r)},
	}})
	if err != nil {
		return wrap(r.String(), err)
	}
	holder, err := out[0].Text()
	if err == nil && holder != "" {
		field := map[inbound.Kind]string{inbound.Geographic: "prefix", inbound.VirtualNumber: "number"}[r.Kind]
		return relay.Errorf(relay.KindConflict, "%s: the %s %s is taken", r, field, r.Number)
	}
	return wrap(r.String(), err)
}

// deleteRelay forgets a relay and lets go of its number.
//
//	KEYS  routes of the kind, relays of the account, version
//	ARGV  "<kind>/<id>"
//	result 1 deleted, 0 there was none
func deleteRelay() *redis.Script {
	return redis.NewScript(`
local old = redis.call('HGET', KEYS[2], ARGV[1])
if not old then return 0 end
redis.call('HDEL', KEYS[1], cjson.decode(old).number)
redis.call('HDEL', KEYS[2], ARGV[1])
redis.call('INCR', KEYS[3])
return 1`)
}

// Delete forgets a relay; relay.KindNotFound if there is none.
func (s *Relays) Delete(ctx context.Context, acct account.ID, k inbound.Kind, id string) error {
	out, err := s.db.eval(ctx, deleteRelay(), []call{{
		keys: []string{keyRoutes(string(k)), keyRelays(acct), keyRelaysVersion()},
		args: []any{relayField(k, id)},
	}})
	if err != nil {
		return wrap("relay "+id, err)
	}
	if n, err := out[0].Int(); err != nil || n == 0 {
		return wrap("relay "+id, cmp.Or(err, error(redis.Nil)))
	}
	return nil
}

// Get loads a relay; relay.KindNotFound if the account has none of that kind
// and id.
func (s *Relays) Get(ctx context.Context, acct account.ID, k inbound.Kind, id string) (inbound.Relay, error) {
	return field[inbound.Relay](ctx, s.db, "relay", keyRelays(acct), relayField(k, id))
}

// List returns an account's relays of a kind by number or prefix.
func (s *Relays) List(ctx context.Context, acct account.ID, k inbound.Kind) ([]inbound.Relay, error) {
	all, err := fields[inbound.Relay](ctx, s.db, "relays", keyRelays(acct))
	maps.DeleteFunc(all, func(_ string, r inbound.Relay) bool { return r.Kind != k })
	return slices.SortedFunc(maps.Values(all), func(a, b inbound.Relay) int {
		return cmp.Or(cmp.Compare(a.Number, b.Number), cmp.Compare(a.ID, b.ID))
	}), err
}

// Change saves what change makes of a relay's action; its number stays.
func (s *Relays) Change(ctx context.Context, acct account.ID, k inbound.Kind, id string, change func(*inbound.Relay) error) (inbound.Relay, error) {
	return edit(ctx, s.db, "relay", keyRelays(acct), relayField(k, id), keyRelaysVersion(), change)
}

// Version counts the changes to all relays.
func (s *Relays) Version(ctx context.Context) (int64, error) {
	n, err := s.db.rdb.Get(ctx, keyRelaysVersion()).Int64()
	if errors.Is(err, redis.Nil) {
		return 0, nil
	}
	return n, wrap("relays: version", err)
}

// owner names a relay in the routes of its kind.
func owner(acct account.ID, id string) string { return acct.String() + "/" + id }

// relayField names a relay among its account's.
func relayField(k inbound.Kind, id string) string { return string(k) + "/" + id }

// splitOwner reads what owner wrote.
func splitOwner(s string) (acct, id string) {
	acct, id, _ = strings.Cut(s, "/")
	return acct, id
}
