package redisstore

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/penstock/penstock/relay"
	"github.com/penstock/penstock/relay/account"
	"github.com/penstock/penstock/relay/iot"
)

// putMarker saves an event marker of a device if nobody changed it meanwhile.
//
//	KEYS  devices, markers of the device
//	ARGV  device id, marker id, marker as it was or "", marker as it shall be,
//	      how many there may be
//	result 1 saved, 0 changed meanwhile, -1 no such device, -2 no room
func putMarker() *redis.Script {
	return redis.NewScript(`
if redis.call('HEXISTS', KEYS[1], ARGV[1]) == 0 then return -1 end
if (redis.call('HGET', KEYS[2], ARGV[2]) or '') ~= ARGV[3] then return 0 end
if ARGV[3] == '' and redis.call('HLEN', KEYS[2]) >= tonumber(ARGV[5]) then return -2 end
redis.call('HSET', KEYS[2], ARGV[2], ARGV[4])
return 1`)
}

// PutMarker saves an event marker of a device.
func (s *IoT) PutMarker(ctx context.Context, acct account.ID, deviceID string, m iot.Marker, now time.Time) (iot.Marker, bool, error) {
	for range maxTries {
		was, err := s.db.rdb.HGet(ctx, keyMarkers(acct, deviceID), m.ID).Result()
		if err != nil && !errors.Is(err, redis.Nil) {
			return m, false, wrap("marker "+m.ID, err)
		}
		next, err := markerAfter(was, m, now)
		if err != nil {
			return m, false, err
		}
		out, err := s.db.eval(ctx, putMarker(), []call{{
			keys: []string{keyDevices(acct), keyMarkers(acct, deviceID)},
			args: []any{deviceID, m.ID, was, encode(next), iot.MaxMarkers},
		}})
		if err != nil {
			return m, false, wrap("marker "+m.ID, err)
		}
		switch saved, _ := out[0].Int(); saved {
		case 1:
			return next, was == "", nil
		case -1:
			return m, false, relay.Errorf(relay.KindNotFound, "device %s", deviceID)
		case -2:
			return m, false, relay.Invalid("event_marker_id", fmt.Sprintf("The device has %d event markers, the most there may be.", iot.MaxMarkers))
		}
	}
	return m, false, relay.Errorf(relay.KindUnavailable, "marker %s: others change it all the time", m.ID)
}

// markerAfter is the marker that stands after m, was being the one before.
func markerAfter(was string, m iot.Marker, now time.Time) (iot.Marker, error) {
	before := iot.Marker{CreatedAt: now}
	if was != "" {
		if err := json.Unmarshal([]byte(was), &before); err != nil {
			return m, fmt.Errorf("marker %s: %w", m.ID, err)
		}
	}
	if m.CreatedAt.IsZero() {
		m.CreatedAt = before.CreatedAt
	}
	return m, nil
}

// Markers lists a device's event markers, newest first.
func (s *IoT) Markers(ctx context.Context, acct account.ID, deviceID string) ([]iot.Marker, error) {
	all, err := fields[iot.Marker](ctx, s.db, "markers", keyMarkers(acct, deviceID))
	return slices.SortedFunc(maps.Values(all), func(a, b iot.Marker) int {
		return cmp.Or(b.CreatedAt.Compare(a.CreatedAt), cmp.Compare(a.ID, b.ID))
	}), err
}
