package redisstore

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strconv"

	"github.com/redis/go-redis/v9"

	"github.com/penstock/penstock/relay"
	"github.com/penstock/penstock/relay/account"
	"github.com/penstock/penstock/relay/inbound"
)

// Candidates finds, for each number, the virtual number that it is and the
// relays of all its prefixes, in two round trips for all.
func (s *Relays) Candidates(ctx context.Context, numbers []string) ([][]inbound.Relay, error) {
	routes, err := s.routes(ctx, numbers)
	if err != nil {
		return nil, err
	}
	relays, err := s.relays(ctx, slices.Collect(maps.Values(routes)))
	if err != nil {
		return nil, err
	}
	out := make([][]inbound.Relay, len(numbers))
	for i, number := range numbers {
		for _, at := range places(number) {
			if r, ok := relays[routes[at]]; ok {
				out[i] = append(out[i], r)
			}
		}
	}
	return out, nil
}

// place is where a route may stand: a number or prefix of a kind of relay.
type place struct {
	kind   inbound.Kind
	number string
}

// places lists where the routes of a number may stand.
func places(number string) []place {
	out := []place{{inbound.VirtualNumber, number}}
	for n := 1; n <= len(number); n++ {
		out = append(out, place{inbound.Geographic, number[:n]})
	}
	return out
}

// address names a relay: its kind, and its account and id as owner writes them.
type address struct {
	kind  inbound.Kind
	owner string
}

// routes looks every place of the numbers up.
func (s *Relays) routes(ctx context.Context, numbers []string) (map[place]address, error) {
	asked := make(map[inbound.Kind]map[string]bool)
	for _, number := range numbers {
		for _, at := range places(number) {
			if asked[at.kind] == nil {
				asked[at.kind] = make(map[string]bool)
			}
			asked[at.kind][at.number] = true
		}
	}
	cmds := make(map[inbound.Kind]*redis.SliceCmd)
	fields := make(map[inbound.Kind][]string)
	_, err := s.db.rdb.Pipelined(ctx, func(p redis.Pipeliner) error {
		for kind, set := range asked {
			fields[kind] = slices.Collect(maps.Keys(set))
			cmds[kind] = p.HMGet(ctx, keyRoutes(string(kind)), fields[kind]...)
		}
		return nil
	})
	if err != nil {
		return nil, wrap("routes", err)
	}
	out := make(map[place]address)
	for kind, cmd := range cmds {
		for i, v := range cmd.Val() {
			if holder, ok := v.(string); ok {
				out[place{kind, fields[kind][i]}] = address{kind, holder}
			}
		}
	}
	return out, nil
}

// relays loads the relays that routes lead to; one deleted meanwhile is absent.
func (s *Relays) relays(ctx context.Context, wanted []address) (map[address]inbound.Relay, error) {
	type asked struct {
		at  address
		cmd *redis.StringCmd
	}
	var all []asked
	_, err := s.db.rdb.Pipelined(ctx, func(p redis.Pipeliner) error {
		for _, at := range wanted {
			acct, id := splitOwner(at.owner)
			n, err := strconv.ParseInt(acct, 10, 64)
			if err != nil {
				return fmt.Errorf("route to %q: %w", at.owner, err)
			}
			all = append(all, asked{at, p.HGet(ctx, keyRelays(account.ID(n)), relayField(at.kind, id))})
		}
		return nil
	})
	if err != nil && !errors.Is(err, redis.Nil) {
		return nil, wrap("relays", err)
	}
	out := make(map[address]inbound.Relay, len(all))
	for _, a := range all {
		r, err := relayFrom(a.cmd)
		if relay.KindOf(err) == relay.KindNotFound {
			continue
		}
		if err != nil {
			return nil, err
		}
		out[a.at] = r
	}
	return out, nil
}

func relayFrom(cmd *redis.StringCmd) (r inbound.Relay, err error) {
	b, err := cmd.Bytes()
	if err != nil {
		return r, wrap("relay", err)
	}
	if err := json.Unmarshal(b, &r); err != nil {
		return r, fmt.Errorf("relay: %w", err)
	}
	return r, nil
}
