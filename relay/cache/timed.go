package cache

import (
	"context"
	"time"

	"github.com/redis/go-redis/v9"
)

// timed reports the time of each command and pipeline.
type timed struct {
	observe func(operation string, took time.Duration)
}

// DialHook implements redis.Hook.
func (timed) DialHook(next redis.DialHook) redis.DialHook { return next }

// ProcessHook implements redis.Hook.
func (t timed) ProcessHook(next redis.ProcessHook) redis.ProcessHook {
	return func(ctx context.Context, cmd redis.Cmder) error {
		began := time.Now()
		err := next(ctx, cmd)
		t.observe("command", time.Since(began))
		return err
	}
}

// ProcessPipelineHook implements redis.Hook.
func (t timed) ProcessPipelineHook(next redis.ProcessPipelineHook) redis.ProcessPipelineHook {
	return func(ctx context.Context, cmds []redis.Cmder) error {
		began := time.Now()
		err := next(ctx, cmds)
		t.observe("pipeline", time.Since(began))
		return err
	}
}
