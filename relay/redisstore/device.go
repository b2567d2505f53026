package redisstore

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"

	"github.com/redis/go-redis/v9"

	"github.com/penstock/penstock/relay"
	"github.com/penstock/penstock/relay/account"
	"github.com/penstock/penstock/relay/iot"
)

// createDevice saves a device and its sensors unless the identifier is taken.
//
//	KEYS  identifiers, devices, sensors of the device, count of series
//	ARGV  identifier, device id, device JSON, then key and sensor JSON in turn
//	result 1 saved, 0 taken
func createDevice() *redis.Script {
	return redis.NewScript(`
if redis.call('HSETNX', KEYS[1], ARGV[1], ARGV[2]) == 0 then return 0 end
redis.call('HSET', KEYS[2], ARGV[2], ARGV[3])
local series = 0
for i = 4, #ARGV, 2 do series = series + redis.call('HSET', KEYS[3], ARGV[i], ARGV[i + 1]) end
redis.call('INCRBY', KEYS[4], series)
return 1`)
}

// CreateDevice saves a device and its sensors. It counts no version up: nobody
// remembers a device that was not there.
func (s *IoT) CreateDevice(ctx context.Context, acct account.ID, d iot.Device, sensors []iot.Sensor) error {
	if err := s.claimIdentifier(ctx, acct, d.Identifier); err != nil {
		return err
	}
	args := []any{d.Identifier, d.ID, encode(d)}
	for _, sensor := range sensors {
		args = append(args, sensor.Key, encode(sensor))
	}
	out, err := s.db.eval(ctx, createDevice(), []call{{
		keys: []string{keyIdentifiers(acct), keyDevices(acct), keySensors(acct, d.ID), keySeriesCount(acct)}, args: args,
	}})
	if err != nil {
		return wrap("device "+d.ID, err)
	}
	if saved, _ := out[0].Int(); saved == 0 {
		return conflict(d.Identifier)
	}
	return nil
}

// claimIdentifier gives a devEUI or MAC address to an account for good.
func (s *IoT) claimIdentifier(ctx context.Context, acct account.ID, identifier string) error {
	if _, unique := iot.NormalizeIdentifier(identifier); !unique {
		return nil
	}
	claimed, err := s.db.rdb.SetNX(ctx, keyClaim(identifier), acct.String(), 0).Result()
	if err != nil || claimed {
		return wrap("claim of "+identifier, err)
	}
	holder, err := s.db.rdb.Get(ctx, keyClaim(identifier)).Result()
	if err != nil {
		return wrap("claim of "+identifier, err)
	}
	if holder != acct.String() {
		return conflict(identifier)
	}
	return nil
}

// ChangeDevice saves what change makes of a device; its identifier never
// changes.
func (s *IoT) ChangeDevice(ctx context.Context, acct account.ID, id string, change func(*iot.Device) error) (iot.Device, error) {
	return edit(ctx, s.db, "device", keyDevices(acct), id, keyIoTVersion(acct), change)
}

// deleteDevice forgets a device and all that is kept of it.
//
//	KEYS  devices, identifiers, version, count of series, when devices were
//	      heard, sensors of the device, then whatever else is kept of it
//	ARGV  device id, identifier
//	result 1 deleted, 0 there was none
func deleteDevice() *redis.Script {
	return redis.NewScript(`
if redis.call('HDEL', KEYS[1], ARGV[1]) == 0 then return 0 end
if redis.call('HGET', KEYS[2], ARGV[2]) == ARGV[1] then redis.call('HDEL', KEYS[2], ARGV[2]) end
redis.call('INCR', KEYS[3])
redis.call('HDEL', KEYS[5], ARGV[1])
redis.call('DECRBY', KEYS[4], redis.call('HLEN', KEYS[6]))
for i = 6, #KEYS do redis.call('DEL', KEYS[i]) end
return 1`)
}

// DeleteDevice forgets a device and all that is kept of it, and lets go of its
// identifier.
func (s *IoT) DeleteDevice(ctx context.Context, acct account.ID, id string) error {
	d, err := s.Device(ctx, acct, id)
	if err != nil {
		return err
	}
	out, err := s.db.eval(ctx, deleteDevice(), []call{{
		keys: []string{
			keyDevices(acct), keyIdentifiers(acct), keyIoTVersion(acct), keySeriesCount(acct), keyHeard(acct), keySensors(acct, id),
			keyLatest(acct, id), keyMarkers(acct, id), keyFrameOrder(acct, id), keyFrames(acct, id),
		},
		args: []any{id, d.Identifier},
	}})
	if err != nil {
		return wrap("device "+id, err)
	}
	if deleted, _ := out[0].Int(); deleted == 0 {
		return relay.Errorf(relay.KindNotFound, "device %s", id)
	}
	if _, unique := iot.NormalizeIdentifier(d.Identifier); !unique {
		return nil
	}
	return s.releaseIdentifier(ctx, acct, d.Identifier)
}

// releaseClaim lets go of an identifier.
//
//	KEYS  claim
//	ARGV  account id
//	result nothing
func releaseClaim() *redis.Script {
	return redis.NewScript(`if redis.call('GET', KEYS[1]) == ARGV[1] then redis.call('DEL', KEYS[1]) end`)
}

func (s *IoT) releaseIdentifier(ctx context.Context, acct account.ID, identifier string) error {
	_, err := s.db.eval(ctx, releaseClaim(), []call{{keys: []string{keyClaim(identifier)}, args: []any{acct.String()}}})
	return wrap("claim of "+identifier, err)
}

// Device loads a device.
func (s *IoT) Device(ctx context.Context, acct account.ID, id string) (iot.Device, error) {
	return field[iot.Device](ctx, s.db, "device", keyDevices(acct), id)
}

// DeviceByIdentifier loads a device by its normalised identifier.
func (s *IoT) DeviceByIdentifier(ctx context.Context, acct account.ID, identifier string) (iot.Device, error) {
	id, err := s.db.rdb.HGet(ctx, keyIdentifiers(acct), identifier).Result()
	if err != nil {
		return iot.Device{}, wrap("device "+identifier, err)
	}
	return s.Device(ctx, acct, id)
}

// Devices lists an account's devices in order of creation.
func (s *IoT) Devices(ctx context.Context, acct account.ID) ([]iot.Device, error) {
	all, err := fields[iot.Device](ctx, s.db, "devices", keyDevices(acct))
	return slices.SortedFunc(maps.Values(all), func(a, b iot.Device) int {
		return cmp.Or(a.CreatedAt.Compare(b.CreatedAt), cmp.Compare(a.ID, b.ID))
	}), err
}

// CountDevices counts an account's devices.
func (s *IoT) CountDevices(ctx context.Context, acct account.ID) (int, error) {
	n, err := s.db.rdb.HLen(ctx, keyDevices(acct)).Result()
	return int(n), wrap("devices", err)
}

// Load returns the devices that are there among the identifiers.
func (s *IoT) Load(ctx context.Context, acct account.ID, identifiers []string) (map[string]iot.Known, error) {
	if len(identifiers) == 0 {
		return nil, nil
	}
	ids, err := s.db.rdb.HMGet(ctx, keyIdentifiers(acct), identifiers...).Result()
	if err != nil {
		return nil, wrap("devices", err)
	}
	type pair struct {
		device  *redis.StringCmd
		sensors *redis.MapStringStringCmd
	}
	asked := make(map[string]pair, len(ids))
	_, err = s.db.rdb.Pipelined(ctx, func(p redis.Pipeliner) error {
		for i, id := range ids {
			if id, ok := id.(string); ok {
				asked[identifiers[i]] = pair{p.HGet(ctx, keyDevices(acct), id), p.HGetAll(ctx, keySensors(acct, id))}
			}
		}
		return nil
	})
	if err != nil && !errors.Is(err, redis.Nil) {
		return nil, wrap("devices", err)
	}
	out := make(map[string]iot.Known, len(asked))
	for identifier, a := range asked {
		known, err := knownFrom(a.device, a.sensors)
		if relay.KindOf(err) == relay.KindNotFound {
			continue // deleted meanwhile
		}
		if err != nil {
			return nil, err
		}
		out[identifier] = known
	}
	return out, nil
}

func knownFrom(device *redis.StringCmd, sensors *redis.MapStringStringCmd) (k iot.Known, err error) {
	b, err := device.Bytes()
	if err != nil {
		return k, wrap("device", err)
	}
	if err := json.Unmarshal(b, &k.Device); err != nil {
		return k, fmt.Errorf("device: %w", err)
	}
	all, err := sensors.Result()
	if err != nil {
		return k, wrap("sensors", err)
	}
	k.Sensors, err = sensorsFrom(all)
	return k, err
}

func sensorsFrom(all map[string]string) ([]iot.Sensor, error) {
	out := make([]iot.Sensor, 0, len(all))
	for key, text := range all {
		var sensor iot.Sensor
		if err := json.Unmarshal([]byte(text), &sensor); err != nil {
			return nil, fmt.Errorf("sensor %s: %w", key, err)
		}
		out = append(out, sensor)
	}
	slices.SortFunc(out, func(a, b iot.Sensor) int {
		return cmp.Or(a.CreatedAt.Compare(b.CreatedAt), cmp.Compare(a.Key, b.Key))
	})
	return out, nil
}
