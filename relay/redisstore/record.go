package redisstore

import (
	"context"
	"encoding/json"
	"fmt"

	"github.com/redis/go-redis/v9"
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

// setField saves one record in a hash of JSON records.
func setField(ctx context.Context, p redis.Cmdable, key, name string, record any) error {
	b, err := json.Marshal(record)
	if err != nil {
		return err
	}
	return p.HSet(ctx, key, name, b).Err()
}
