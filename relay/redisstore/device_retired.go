package redisstore

import (
	"cmp"
	"context"
	"maps"
	"slices"

	"github.com/penstock/penstock/relay/account"
	"github.com/penstock/penstock/relay/iot"
)

// Retire remembers sensors of a device that is deleted next.
func (s *IoT) Retire(ctx context.Context, acct account.ID, sensors []iot.Retired) error {
	pairs := make([]any, 0, 2*len(sensors))
	for _, r := range sensors {
		pairs = append(pairs, r.SensorID, encode(r))
	}
	return wrap("retired sensors", s.db.rdb.HSet(ctx, keyRetired(acct), pairs...).Err())
}

// Retired lists sensors of deleted devices by id.
func (s *IoT) Retired(ctx context.Context, acct account.ID) ([]iot.Retired, error) {
	all, err := fields[iot.Retired](ctx, s.db, "retired sensors", keyRetired(acct))
	return slices.SortedFunc(maps.Values(all), func(a, b iot.Retired) int { return cmp.Compare(a.SensorID, b.SensorID) }), err
}

// Unretire forgets sensors of deleted devices.
func (s *IoT) Unretire(ctx context.Context, acct account.ID, sensorIDs []string) error {
	return wrap("retired sensors", s.db.rdb.HDel(ctx, keyRetired(acct), sensorIDs...).Err())
}
