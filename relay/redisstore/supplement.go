package redisstore

import (
	"context"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/redis/go-redis/v9"

	"github.com/penstock/penstock/decoders"
	"github.com/penstock/penstock/relay/account"
	"github.com/penstock/penstock/relay/iot"
)

// joinParts adds what posts tell of frames to what is known of each.
//
//	KEYS  told, one per part
//	ARGV  lifetime in seconds, then of each part: the frame's time or nothing,
//	      its position or nothing, the number of gateways, and of each gateway
//	      its id, SNR and RSSI
//	result for each part all fields and values of told
func joinParts() *redis.Script {
	return redis.NewScript(`
local function number(s) return tonumber(s) or -1e308 end
local function stronger(snr, rssi, kept)
  local s, r = string.match(kept, '^(.*)|(.*)$')
  if number(snr) ~= number(s) then return number(snr) > number(s) end
  return number(rssi) > number(r)
end
local out, a = {}, 2
for i, key in ipairs(KEYS) do
  local at, position, gateways = ARGV[a], ARGV[a + 1], tonumber(ARGV[a + 2])
  a = a + 3
  if at ~= '' then redis.call('HSETNX', key, 'at', at) end
  if position ~= '' then redis.call('HSET', key, 'position', position) end
  for _ = 1, gateways do
    local field, snr, rssi = 'g:' .. ARGV[a], ARGV[a + 1], ARGV[a + 2]
    a = a + 3
    local kept = redis.call('HGET', key, field)
    if not kept or stronger(snr, rssi, kept) then redis.call('HSET', key, field, snr .. '|' .. rssi) end
  end
  redis.call('EXPIRE', key, ARGV[1])
  out[i] = redis.call('HGETALL', key)
end
return out`)
}

// Join adds what posts tell of frames to what others have told.
func (s *IoT) Join(ctx context.Context, acct account.ID, parts []iot.Part, ttl time.Duration) ([]iot.Whole, error) {
	var calls []call
	for some := range slices.Chunk(parts, scriptKeys/10) {
		c := call{args: []any{max(1, int(ttl.Seconds()))}}
		for i := range some {
			c.keys = append(c.keys, keyTold(acct, some[i].Device, some[i].Dedup))
			c.args = appendPart(c.args, &some[i])
		}
		calls = append(calls, c)
	}
	cmds, err := s.db.eval(ctx, joinParts(), calls)
	if err != nil {
		return nil, wrap("what was told of frames", err)
	}
	out := make([]iot.Whole, 0, len(parts))
	for _, cmd := range cmds {
		replies, err := cmd.Slice()
		if err != nil {
			return nil, wrap("what was told of frames", err)
		}
		for _, reply := range replies {
			w, err := wholeFrom(reply)
			if err != nil {
				return nil, fmt.Errorf("what was told of a frame: %w", err)
			}
			out = append(out, w)
		}
	}
	return out, nil
}

func appendPart(args []any, p *iot.Part) []any {
	at, position := "", ""
	if !p.At.IsZero() {
		at = strconv.FormatInt(p.At.UnixNano(), 10)
	}
	if p.Position != nil {
		position = float(&p.Position.Latitude) + "|" + float(&p.Position.Longitude)
	}
	args = append(args, at, position, len(p.Gateways))
	for i := range p.Gateways {
		g := &p.Gateways[i]
		args = append(args, g.ID, float(g.SNR), float(g.RSSI))
	}
	return args
}

func float(v *float64) string {
	if v == nil {
		return ""
	}
	return strconv.FormatFloat(*v, 'g', -1, 64)
}

// wholeFrom reads the fields and values of what was told.
func wholeFrom(reply any) (w iot.Whole, err error) {
	list, _ := reply.([]any)
	for i := 0; i+1 < len(list) && err == nil; i += 2 {
		name, _ := list[i].(string)
		text, _ := list[i+1].(string)
		id, isGateway := strings.CutPrefix(name, "g:")
		switch {
		case isGateway:
			g := decoders.Gateway{ID: id}
			g.SNR, g.RSSI, err = pair(text)
			w.Gateways = append(w.Gateways, g)
		case name == "at":
			var ns int64
			ns, err = strconv.ParseInt(text, 10, 64)
			w.At = time.Unix(0, ns).UTC()
		case name == "position":
			w.Position, err = positionFrom(text)
		}
	}
	slices.SortFunc(w.Gateways, func(a, b decoders.Gateway) int { return strings.Compare(a.ID, b.ID) })
	return w, err
}

func positionFrom(text string) (*decoders.Position, error) {
	latitude, longitude, err := pair(text)
	if err != nil || latitude == nil || longitude == nil {
		return nil, fmt.Errorf("position %q: %w", text, err)
	}
	return &decoders.Position{Latitude: *latitude, Longitude: *longitude}, nil
}

// pair reads two numbers, each of which may be missing.
func pair(text string) (a, b *float64, err error) {
	first, second, found := strings.Cut(text, "|")
	if !found {
		return nil, nil, fmt.Errorf("%q: want two numbers", text)
	}
	for _, one := range []struct {
		text string
		to   **float64
	}{{first, &a}, {second, &b}} {
		if one.text == "" {
			continue
		}
		v, err := strconv.ParseFloat(one.text, 64)
		if err != nil {
			return nil, nil, err
		}
		*one.to = &v
	}
	return a, b, nil
}
