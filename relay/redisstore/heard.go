package redisstore

import (
	"context"
	"fmt"
	"slices"
	"strconv"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/penstock/penstock/relay/account"
)

// setHeard keeps when devices were heard last.
//
//	KEYS  devices, heard
//	ARGV  device id and time in turn, as heardEntry writes it
//	result nothing
func setHeard() *redis.Script {
	return redis.NewScript(`
for i = 1, #ARGV, 2 do
  local kept = redis.call('HGET', KEYS[2], ARGV[i])
  if (not kept or kept < ARGV[i + 1]) and redis.call('HEXISTS', KEYS[1], ARGV[i]) == 1 then
    redis.call('HSET', KEYS[2], ARGV[i], ARGV[i + 1])
  end
end`)
}

// SetHeard keeps when devices were heard last.
func (s *IoT) SetHeard(ctx context.Context, acct account.ID, at map[string]time.Time) error {
	var calls []call
	for id, t := range at {
		if n := len(calls); n == 0 || len(calls[n-1].args) >= 2*scriptKeys {
			calls = append(calls, call{keys: []string{keyDevices(acct), keyHeard(acct)}})
		}
		c := &calls[len(calls)-1]
		c.args = append(c.args, id, heardEntry(t))
	}
	_, err := s.db.eval(ctx, setHeard(), calls)
	return wrap("when devices were heard", err)
}

// heardEntry writes a time so that texts compare as times do.
func heardEntry(t time.Time) string { return fmt.Sprintf("%020d", max(0, t.UnixNano())) }

// Heard returns when devices were heard last.
func (s *IoT) Heard(ctx context.Context, acct account.ID, deviceIDs []string) (map[string]time.Time, error) {
	out := make(map[string]time.Time, len(deviceIDs))
	for some := range slices.Chunk(deviceIDs, 10*scriptKeys) {
		entries, err := s.db.rdb.HMGet(ctx, keyHeard(acct), some...).Result()
		if err != nil {
			return nil, wrap("when devices were heard", err)
		}
		for i, entry := range entries {
			text, ok := entry.(string)
			if !ok {
				continue
			}
			ns, err := strconv.ParseInt(text, 10, 64)
			if err != nil {
				return nil, fmt.Errorf("when device %s was heard: %w", some[i], err)
			}
			out[some[i]] = time.Unix(0, ns).UTC()
		}
	}
	return out, nil
}
