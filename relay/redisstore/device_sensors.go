package redisstore

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"

	"github.com/redis/go-redis/v9"

	"github.com/penstock/penstock/relay"
	"github.com/penstock/penstock/relay/account"
	"github.com/penstock/penstock/relay/iot"
)

// addSensors saves sensors whose keys the device does not have, unless the
// device is gone.
//
//	KEYS  devices, sensors of the device, count of series
//	ARGV  device id, then key and sensor JSON in turn
//	result nothing
func addSensors() *redis.Script {
	return redis.NewScript(`
if redis.call('HEXISTS', KEYS[1], ARGV[1]) == 0 then return end
local series = 0
for i = 2, #ARGV, 2 do series = series + redis.call('HSETNX', KEYS[2], ARGV[i], ARGV[i + 1]) end
redis.call('INCRBY', KEYS[3], series)`)
}

// AddSensors saves sensors whose keys the device does not have.
func (s *IoT) AddSensors(ctx context.Context, acct account.ID, deviceID string, sensors []iot.Sensor) error {
	args := []any{deviceID}
	for _, sensor := range sensors {
		args = append(args, sensor.Key, encode(sensor))
	}
	_, err := s.db.eval(ctx, addSensors(), []call{{
		keys: []string{keyDevices(acct), keySensors(acct, deviceID), keySeriesCount(acct)}, args: args,
	}})
	return wrap("sensors of "+deviceID, err)
}

// ChangeSensor saves what change makes of a device's sensor.
func (s *IoT) ChangeSensor(ctx context.Context, acct account.ID, deviceID, key string, change func(*iot.Sensor) error) (iot.Sensor, error) {
	return edit(ctx, s.db, "sensor", keySensors(acct, deviceID), key, keyIoTVersion(acct), change)
}

// Sensors lists a device's sensors in order of creation.
func (s *IoT) Sensors(ctx context.Context, acct account.ID, deviceID string) ([]iot.Sensor, error) {
	all, err := s.db.rdb.HGetAll(ctx, keySensors(acct, deviceID)).Result()
	if err != nil {
		return nil, wrap("sensors of "+deviceID, err)
	}
	return sensorsFrom(all)
}

// CountSensors counts the sensors of all of an account's devices.
func (s *IoT) CountSensors(ctx context.Context, acct account.ID) (int, error) {
	n, err := s.db.rdb.Get(ctx, keySeriesCount(acct)).Int()
	if errors.Is(err, redis.Nil) {
		return 0, nil
	}
	return n, wrap("count of series", err)
}

// replaceSensor saves a sensor if nobody changed it meanwhile. It counts no
// version up: a gateway that remembers the sensor with its old type finds that
// out by itself.
//
//	KEYS  sensors of the device
//	ARGV  key, sensor as it was, sensor as it shall be
//	result 1 saved, 0 changed meanwhile or gone
func replaceSensor() *redis.Script {
	return redis.NewScript(`
if redis.call('HGET', KEYS[1], ARGV[1]) ~= ARGV[2] then return 0 end
redis.call('HSET', KEYS[1], ARGV[1], ARGV[3])
return 1`)
}

// RetypeSensors gives sensors of a device another type.
func (s *IoT) RetypeSensors(ctx context.Context, acct account.ID, deviceID string, types map[string]string) error {
	key := keySensors(acct, deviceID)
	for range maxTries {
		all, err := s.db.rdb.HGetAll(ctx, key).Result()
		if err != nil {
			return wrap("sensors of "+deviceID, err)
		}
		calls, err := retypings(key, all, types)
		if err != nil {
			return err
		}
		out, err := s.db.eval(ctx, replaceSensor(), calls)
		if err != nil {
			return wrap("sensors of "+deviceID, err)
		}
		if !slices.ContainsFunc(out, func(c *redis.Cmd) bool { saved, _ := c.Int(); return saved == 0 }) {
			return nil
		}
	}
	return relay.Errorf(relay.KindUnavailable, "sensors of %s: others change them all the time", deviceID)
}

// retypings are the calls that give those sensors their types which have others.
func retypings(hash string, all, types map[string]string) ([]call, error) {
	var calls []call
	for name, kind := range types {
		was, ok := all[name]
		if !ok {
			continue
		}
		var sensor iot.Sensor
		if err := json.Unmarshal([]byte(was), &sensor); err != nil {
			return nil, fmt.Errorf("sensor %s: %w", name, err)
		}
		if sensor.SensorTypeID == kind {
			continue
		}
		sensor.Former = slices.DeleteFunc(append(sensor.Former, sensor.SensorTypeID), func(t string) bool { return t == kind })
		sensor.SensorTypeID = kind
		calls = append(calls, call{keys: []string{hash}, args: []any{name, was, encode(sensor)}})
	}
	return calls, nil
}
