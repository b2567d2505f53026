package redisstore

import (
	"cmp"
	"context"
	"maps"
	"slices"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/penstock/penstock/relay/account"
	"github.com/penstock/penstock/relay/iot"
)

// keepFrames keeps raw frames of one device and forgets those that are too many
// or too old, unless the device is gone.
//
//	KEYS  devices, order of the frames, frames
//	ARGV  device id, how many are kept, retention in seconds, then id, ms of
//	      receipt and JSON of each frame in turn
//	result nothing
//
// What is too old counts from the newest frame, so that a replay does not bring
// back what had gone.
func keepFrames() *redis.Script {
	return redis.NewScript(`
if redis.call('HEXISTS', KEYS[1], ARGV[1]) == 0 then return end
for i = 4, #ARGV, 3 do
  redis.call('ZADD', KEYS[2], ARGV[i + 1], ARGV[i])
  redis.call('HSET', KEYS[3], ARGV[i], ARGV[i + 2])
end
local last = redis.call('ZRANGE', KEYS[2], -1, -1, 'WITHSCORES')
local oldest = string.format('%.0f', tonumber(last[2]) - tonumber(ARGV[3]) * 1000)
for _, gone in ipairs({
  redis.call('ZRANGEBYSCORE', KEYS[2], '-inf', '(' .. oldest),
  redis.call('ZRANGE', KEYS[2], 0, -1 - tonumber(ARGV[2]))
}) do
  for _, id in ipairs(gone) do
    redis.call('ZREM', KEYS[2], id)
    redis.call('HDEL', KEYS[3], id)
  end
end
redis.call('EXPIRE', KEYS[2], ARGV[3])
redis.call('EXPIRE', KEYS[3], ARGV[3])`)
}

// KeepFrames keeps raw frames of devices.
func (s *IoT) KeepFrames(ctx context.Context, acct account.ID, frames []iot.RawFrame) error {
	of := make(map[string]int)
	var calls []call
	for _, f := range frames {
		n, ok := of[f.DeviceID]
		if !ok || len(calls[n].args) > 3*scriptKeys {
			n = len(calls)
			of[f.DeviceID] = n
			calls = append(calls, call{
				keys: []string{keyDevices(acct), keyFrameOrder(acct, f.DeviceID), keyFrames(acct, f.DeviceID)},
				args: []any{f.DeviceID, iot.MaxFrames, int(iot.FrameRetention.Seconds())},
			})
		}
		calls[n].args = append(calls[n].args, f.ID, f.ReceivedAt.UnixMilli(), encode(f))
	}
	_, err := s.db.eval(ctx, keepFrames(), calls)
	return wrap("raw frames", err)
}

// Frames lists the raw frames kept of a device, newest first.
func (s *IoT) Frames(ctx context.Context, acct account.ID, deviceID string, since time.Time) ([]iot.RawFrame, error) {
	all, err := fields[iot.RawFrame](ctx, s.db, "raw frames", keyFrames(acct, deviceID))
	maps.DeleteFunc(all, func(_ string, f iot.RawFrame) bool { return f.ReceivedAt.Before(since) })
	return slices.SortedFunc(maps.Values(all), func(a, b iot.RawFrame) int {
		return cmp.Or(b.ReceivedAt.Compare(a.ReceivedAt), cmp.Compare(b.ID, a.ID))
	}), err
}
