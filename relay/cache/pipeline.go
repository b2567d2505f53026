package cache

import (
	"context"
	"errors"

	"github.com/redis/go-redis/v9"
)

// atOnce is how many records go in one round trip, which has to be answered
// within one timeout.
const atOnce = 1000

// pipeline runs commands in one round trip. A key or field that is not there is
// no error.
func (d *DB) pipeline(ctx context.Context, noun string, queue func(p redis.Pipeliner)) error {
	cmds, err := d.rdb.Pipelined(ctx, func(p redis.Pipeliner) error {
		queue(p)
		return nil
	})
	for _, c := range cmds {
		if err := c.Err(); err != nil && !errors.Is(err, redis.Nil) {
			return wrap(noun, err)
		}
	}
	if errors.Is(err, redis.Nil) {
		return nil
	}
	return wrap(noun, err) // of a new connection that was refused
}
