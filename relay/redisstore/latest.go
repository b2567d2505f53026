package redisstore

import (
	"context"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/penstock/penstock/relay/account"
	"github.com/penstock/penstock/relay/iot"
)

// claimFrames marks frames as seen and tells who saw each first.
//
//	KEYS  seen, one per frame
//	ARGV  lifetime in seconds, then the record that brought each frame
//	result for each frame the record that brought it first
func claimFrames() *redis.Script {
	return redis.NewScript(`
local out = {}
for i, key in ipairs(KEYS) do
  local record = ARGV[i + 1]
  if redis.call('SET', key, record, 'NX', 'EX', ARGV[1]) then
    out[i] = record
  else
    out[i] = redis.call('GET', key) or record
  end
end
return out`)
}

// scriptKeys is how many keys one script call takes at most: Lua's unpack and
// the server's patience both end somewhere.
const scriptKeys = 1000

// Claim marks frames as seen for the given time.
func (s *IoT) Claim(ctx context.Context, acct account.ID, frames []iot.Seen, ttl time.Duration) ([]string, error) {
	var calls []call
	for part := range slices.Chunk(frames, scriptKeys) {
		c := call{args: []any{max(1, int(ttl.Seconds()))}}
		for _, f := range part {
			c.keys = append(c.keys, keySeen(acct, f.Device, f.Dedup))
			c.args = append(c.args, f.Record)
		}
		calls = append(calls, c)
	}
	cmds, err := s.db.eval(ctx, claimFrames(), calls)
	if err != nil {
		return nil, wrap("frames seen", err)
	}
	first := make([]string, 0, len(frames))
	for _, cmd := range cmds {
		part, err := cmd.StringSlice()
		if err != nil {
			return nil, wrap("frames seen", err)
		}
		first = append(first, part...)
	}
	return first, nil
}

// setLatest keeps each reading that is not older than what is kept.
//
//	KEYS  devices, then latest, one per device
//	ARGV  for each reading: index of its key, device id, sensor id, entry
//	result nothing
//
// Entries begin with the time in 20 digits, so that comparing text compares
// times: Lua's numbers cannot hold nanoseconds.
func setLatest() *redis.Script {
	return redis.NewScript(`
local there = {}
for i = 1, #ARGV, 4 do
  local device, sensor, entry = ARGV[i + 1], ARGV[i + 2], ARGV[i + 3]
  local key = KEYS[tonumber(ARGV[i])]
  if there[device] == nil then there[device] = redis.call('HEXISTS', KEYS[1], device) == 1 end
  if there[device] then
    local kept = redis.call('HGET', key, sensor)
    if not kept or string.sub(kept, 1, 20) <= string.sub(entry, 1, 20) then
      redis.call('HSET', key, sensor, entry)
    end
  end
end`)
}

// SetLatest keeps those points that are not older than what is kept.
func (s *IoT) SetLatest(ctx context.Context, acct account.ID, points []iot.Point) error {
	var calls []call
	for part := range slices.Chunk(newest(points), scriptKeys) {
		c := call{keys: []string{keyDevices(acct)}}
		index := make(map[string]int)
		for _, p := range part {
			n, ok := index[p.DeviceID]
			if !ok {
				c.keys = append(c.keys, keyLatest(acct, p.DeviceID))
				n = len(c.keys)
				index[p.DeviceID] = n
			}
			c.args = append(c.args, n, p.DeviceID, p.SensorID, latestEntry(p))
		}
		calls = append(calls, c)
	}
	_, err := s.db.eval(ctx, setLatest(), calls)
	return wrap("latest values", err)
}

// newest leaves of each sensor the last point of the highest time.
func newest(points []iot.Point) []*iot.Point {
	at := make(map[string]int, len(points))
	out := make([]*iot.Point, 0, len(points))
	for i := range points {
		p := &points[i]
		n, ok := at[p.SensorID]
		switch {
		case !ok:
			at[p.SensorID] = len(out)
			out = append(out, p)
		case !p.Time.Before(out[n].Time):
			out[n] = p
		}
	}
	return out
}

func latestEntry(p *iot.Point) string {
	if p.IsText {
		return fmt.Sprintf("%020d|t|%s|%s", max(0, p.Time.UnixNano()), p.Type, p.Text)
	}
	return fmt.Sprintf("%020d|n|%s|%s", max(0, p.Time.UnixNano()), p.Type, strconv.FormatFloat(p.Value, 'g', -1, 64))
}

func latestPoint(entry string) (p iot.Point, err error) {
	parts := strings.SplitN(entry, "|", 4) // ids of sensor types have no bar
	if len(parts) != 4 {
		return p, fmt.Errorf("entry %q: want time, kind, type and value", entry)
	}
	p.Type = parts[2]
	ns, err := strconv.ParseInt(parts[0], 10, 64)
	if err != nil {
		return p, err
	}
	p.Time = time.Unix(0, ns).UTC()
	if p.IsText = parts[1] == "t"; p.IsText {
		p.Text = parts[3]
		return p, nil
	}
	p.Value, err = strconv.ParseFloat(parts[3], 64)
	return p, err
}
