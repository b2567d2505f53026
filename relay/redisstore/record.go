package redisstore

import (
	"context"
	"encoding/json"
	"fmt"

	"github.com/redis/go-redis/v9"

	"github.com/penstock/penstock/relay"
)

// field reads one record out of a hash of JSON records.
func field[T any](ctx context.Context, d *DB, noun, key, name string) (T, error) {
	var out T
	b, err := d.rdb.HGet(ctx, key, name).Bytes()
	if err != nil {
		return out, wrap(noun+" "+name, err)
	}
	if err := json.Unmarshal(b, &out); err != nil {
		return out, fmt.Errorf("%s %s: %w", noun, name, err)
	}
	return out, nil
}

// fields reads every record of a hash of JSON records.
func fields[T any](ctx context.Context, d *DB, noun, key string) (map[string]T, error) {
	all, err := d.rdb.HGetAll(ctx, key).Result()
	if err != nil {
		return nil, wrap(noun, err)
	}
	out := make(map[string]T, len(all))
	for name, text := range all {
		var v T
		if err := json.Unmarshal([]byte(text), &v); err != nil {
			return nil, fmt.Errorf("%s %s: %w", noun, name, err)
		}
		out[name] = v
	}
	return out, nil
}

// replaceField saves a record if nobody changed it meanwhile, and counts a
// version up.
//
//	KEYS  hash, counter
//	ARGV  field, record as it was, record as it shall be
//	result 1 saved, 0 changed meanwhile or gone
func replaceField() *redis.Script {
	return redis.NewScript(`
if redis.call('HGET', KEYS[1], ARGV[1]) ~= ARGV[2] then return 0 end
redis.call('HSET', KEYS[1], ARGV[1], ARGV[3])
redis.call('INCR', KEYS[2])
return 1`)
}

// maxTries is how often a record is changed again when others are faster.
const maxTries = 100

// edit saves what change makes of a record. It is called again with what stands
// then when somebody else was faster, so that no change is lost.
func edit[T any](ctx context.Context, d *DB, noun, key, name, version string, change func(*T) error) (T, error) {
	noun += " " + name
	for range maxTries {
		var v T
		was, err := d.rdb.HGet(ctx, key, name).Result()
		if err != nil {
			return v, wrap(noun, err)
		}
		if err := json.Unmarshal([]byte(was), &v); err != nil {
			return v, fmt.Errorf("%s: %w", noun, err)
		}
		if err := change(&v); err != nil {
			return v, err
		}
		is := encode(v)
		if is == was {
			return v, nil
		}
		out, err := d.eval(ctx, replaceField(), []call{{keys: []string{key, version}, args: []any{name, was, is}}})
		if err != nil {
			return v, wrap(noun, err)
		}
		if saved, _ := out[0].Int(); saved == 1 {
			return v, nil
		}
	}
	var none T
	return none, relay.Errorf(relay.KindUnavailable, "%s: others change it all the time", noun)
}

// setField saves one record in a hash of JSON records.
func setField(ctx context.Context, p redis.Cmdable, key, name string, record any) error {
	b, err := json.Marshal(record)
	if err != nil {
		return err
	}
	return p.HSet(ctx, key, name, b).Err()
}
