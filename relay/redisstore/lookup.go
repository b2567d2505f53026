package redisstore

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/penstock/penstock/relay"
	"github.com/penstock/penstock/relay/lookup"
)

// Lookups keeps what networks said, and the simulator's networks; it is a
// lookup.Cache.
type Lookups struct{ db *DB }

// Lookups returns the store of lookups.
func (d *DB) Lookups() *Lookups { return &Lookups{db: d} }

// Remembered returns what a number's network said.
func (s *Lookups) Remembered(ctx context.Context, number relay.MSISDN) (r lookup.Result, err error) {
	b, err := s.db.rdb.Get(ctx, keyLookup(string(number))).Bytes()
	if err != nil {
		return r, wrap("lookup", err)
	}
	if err := json.Unmarshal(b, &r); err != nil {
		return r, fmt.Errorf("lookup: remembered: %w", err)
	}
	return r, nil
}

// Remember keeps what a number's network said.
func (s *Lookups) Remember(ctx context.Context, r lookup.Result, keep time.Duration) error {
	return wrap("lookup", s.db.rdb.Set(ctx, keyLookup(string(r.Number)), encode(r), keep).Err())
}

// PutNetwork saves a row of the simulator's table.
func (s *Lookups) PutNetwork(ctx context.Context, n lookup.Network) error {
	return wrap("network "+n.Prefix, setField(ctx, s.db.rdb, keyNetworks(), n.Prefix, n))
}

// DeleteNetwork removes a row; relay.KindNotFound if there is none.
func (s *Lookups) DeleteNetwork(ctx context.Context, prefix string) error {
	n, err := s.db.rdb.HDel(ctx, keyNetworks(), prefix).Result()
	if err == nil && n == 0 {
		return relay.Errorf(relay.KindNotFound, "network %s: there is none", prefix)
	}
	return wrap("network "+prefix, err)
}

// Networks returns the simulator's table by prefix.
func (s *Lookups) Networks(ctx context.Context) ([]lookup.Network, error) {
	all, err := fields[lookup.Network](ctx, s.db, "networks", keyNetworks())
	return slices.SortedFunc(maps.Values(all), func(a, b lookup.Network) int { return cmp.Compare(a.Prefix, b.Prefix) }), err
}
