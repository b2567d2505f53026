package redisstore

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/redis/go-redis/v9"

	"github.com/penstock/penstock/relay"
	"github.com/penstock/penstock/relay/account"
	"github.com/penstock/penstock/relay/iot"
)

// Overview returns a device's sensors and latest values, in one round trip.
func (s *IoT) Overview(ctx context.Context, acct account.ID, deviceID string) (o iot.Overview, err error) {
	var (
		there           *redis.BoolCmd
		sensors, latest *redis.MapStringStringCmd
		version         *redis.StringCmd
	)
	_, err = s.db.rdb.Pipelined(ctx, func(p redis.Pipeliner) error {
		there = p.HExists(ctx, keyDevices(acct), deviceID)
		sensors = p.HGetAll(ctx, keySensors(acct, deviceID))
		latest = p.HGetAll(ctx, keyLatest(acct, deviceID))
		version = p.Get(ctx, keySensorTypesVersion())
		return nil
	})
	if err != nil && !errors.Is(err, redis.Nil) {
		return o, wrap("device "+deviceID, err)
	}
	if !there.Val() {
		return o, relay.Errorf(relay.KindNotFound, "device %s", deviceID)
	}
	if o.TypesVersion, err = version.Int64(); err != nil && !errors.Is(err, redis.Nil) {
		return o, wrap("sensor types", err)
	}
	if o.Sensors, err = sensorsFrom(sensors.Val()); err != nil {
		return o, err
	}
	o.Latest, err = latestFrom(acct, deviceID, latest.Val())
	return o, err
}

// latestFrom reads a device's latest values, in order of sensor id.
func latestFrom(acct account.ID, deviceID string, all map[string]string) ([]iot.Point, error) {
	out := make([]iot.Point, 0, len(all))
	for sensorID, entry := range all {
		p, err := latestPoint(entry)
		if err != nil {
			return nil, fmt.Errorf("latest value of sensor %s: %w", sensorID, err)
		}
		p.Account, p.DeviceID, p.SensorID = acct, deviceID, sensorID
		out = append(out, p)
	}
	slices.SortFunc(out, func(a, b iot.Point) int { return cmp.Compare(a.SensorID, b.SensorID) })
	return out, nil
}
