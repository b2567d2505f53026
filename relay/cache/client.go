// Package cache stores data in Redis that can be rebuilt: for IoT marks of frames seen,
// posts of one frame, the latest values and when devices were heard last, and the open
// breakers (Breakers). It is the only package that uses go-redis; asynq gets its own
// connections from DB.MakeRedisClient.
//
// Redis may be emptied, fail over or be replaced at any moment. Callers continue without it,
// and any value may be missing. All keys but one expire.
//
// The same commands serve Redis 6.2 and later, Sentinel, Cluster and the embedded server:
// plain commands in pipelines, no scripts. Where two gateways change the same thing at once,
// the order of the changes does not matter: each value has a field of its own, of which
// readers take the newest, or a score that only grows. The hash tag of an account's keys
// puts them into one slot.
package cache

import (
	"cmp"
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"log/slog"
	"net"
	"runtime"
	"slices"
	"strconv"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/redis/go-redis/v9/maintnotifications"
)

// Options says where Redis is. The zero value is redis://127.0.0.1:6379.
type Options struct {
	// URL is redis://, rediss://, redis+sentinel:// or redis+cluster://, see
	// ParseURL.
	URL string
	// Dialer replaces the network, for the embedded server.
	Dialer func(ctx context.Context, network, addr string) (net.Conn, error)
	// PoolSize is the most connections to one server; 0 means 10 per CPU.
	PoolSize int
	// Timeout bounds connecting and each answer; 0 means 3 s.
	Timeout time.Duration
	// MaxMarks is the largest number of frames that are stored for the duplicate check, the
	// last half of them in any case; 0 means all of its time. No other gateway may use the
	// Redis then.
	MaxMarks int
	// Logger takes what Check could not find out; nil means slog.Default.
	Logger *slog.Logger
	// Now is the clock; nil means time.Now.
	Now func() time.Time
	// Observe is called with the time of each command ("command") and of each pipeline
	// ("pipeline"); nil is not called.
	Observe func(operation string, took time.Duration)
}

// SetLogger has go-redis log to a logger, at debug level: it prints every connection that
// fails, and callers get each as an error. The logger is one of the whole process.
func SetLogger(log *slog.Logger) { redis.SetLogger(redisLog{log}) }

// redisLog is a logger as go-redis calls it.
type redisLog struct{ *slog.Logger }

// Printf logs a line.
func (l redisLog) Printf(ctx context.Context, format string, args ...any) {
	l.DebugContext(ctx, "redis", "text", fmt.Sprintf(format, args...))
}

// DB is a connection to Redis. Its methods are safe for concurrent use.
type DB struct {
	rdb  redis.UniversalClient
	link redis.UniversalOptions
	log  *slog.Logger
	now  func() time.Time
	seen *spanLimit
}

// Open prepares the connection to a Redis. It fails only for an invalid URL: a server that
// does not answer is not an error, because the gateway accepts while Redis is down.
func Open(o Options) (*DB, error) {
	link, err := ParseURL(o.URL)
	if err != nil {
		return nil, err
	}
	link.Dialer = o.Dialer
	link.PoolSize = cmp.Or(max(o.PoolSize, 0), 10*runtime.GOMAXPROCS(0))
	timeout := cmp.Or(max(o.Timeout, 0), 3*time.Second)
	link.DialTimeout, link.ReadTimeout, link.WriteTimeout = timeout, timeout, timeout
	link.ContextTimeoutEnabled = true
	// The client uses nothing that an older server, a proxy or the embedded server does not
	// know, and fails quickly: callers wait and try again on their own.
	link.Protocol, link.DisableIdentity, link.DialerRetries = 2, true, 1
	link.MaintNotificationsConfig = &maintnotifications.Config{Mode: maintnotifications.ModeDisabled}
	db := &DB{rdb: redis.NewUniversalClient(link), link: *link, log: cmp.Or(o.Logger, slog.Default()), now: o.Now, seen: &spanLimit{limit: o.MaxMarks / 2}}
	if db.now == nil {
		db.now = time.Now
	}
	if o.Observe != nil {
		db.rdb.AddHook(timed{o.Observe})
	}
	return db, nil
}

// MakeRedisClient returns a go-redis client of its own to the same Redis, which
// the caller closes. With it a DB is an asynq.RedisConnOpt.
func (d *DB) MakeRedisClient() any {
	link := d.link
	return redis.NewUniversalClient(&link)
}

// Ping reports whether Redis answers.
func (d *DB) Ping(ctx context.Context) error {
	return wrap("", d.rdb.Ping(ctx).Err())
}

// Close closes every connection; calls under way fail.
func (d *DB) Close() error { return d.rdb.Close() }

// ID identifies this Redis by a random text that is stored in it, so that gateways see
// whether they share one. An emptied Redis is another one.
func (d *DB) ID(ctx context.Context) (string, error) {
	if err := d.rdb.SetNX(ctx, keyID(), rand.Text(), 0).Err(); err != nil {
		return "", wrap("redis id", err)
	}
	id, err := d.rdb.Get(ctx, keyID()).Result()
	return id, wrap("redis id", err)
}

// Databases notes that gateways on a database use this Redis now, and returns the
// other databases whose gateways did so within the given time.
func (d *DB) Databases(ctx context.Context, database string, now time.Time, duration time.Duration) (otherDatabases []string, err error) {
	pipe := d.rdb.Pipeline()
	pipe.ZAdd(ctx, keyDatabases(), redis.Z{Score: float64(now.UnixMilli()), Member: database})
	pipe.ZRemRangeByScore(ctx, keyDatabases(), "-inf", strconv.FormatInt(now.Add(-duration).UnixMilli(), 10))
	databases := pipe.ZRange(ctx, keyDatabases(), 0, -1)
	pipe.Expire(ctx, keyDatabases(), time.Hour)
	if _, err := pipe.Exec(ctx); err != nil {
		return nil, wrap("redis databases", err)
	}
	return slices.DeleteFunc(databases.Val(), func(name string) bool { return name == database }), nil
}

// maxPipelined is the largest number of records in one round trip, which has to be answered
// within one timeout.
const maxPipelined = 1000

// pipeline runs commands in one round trip, none if there are no commands. A missing key or
// field is not an error.
func (d *DB) pipeline(ctx context.Context, label string, queue func(p redis.Pipeliner)) error {
	cmds, err := d.rdb.Pipelined(ctx, func(p redis.Pipeliner) error {
		queue(p)
		return nil
	})
	for _, c := range cmds {
		if err := c.Err(); err != nil && !errors.Is(err, redis.Nil) {
			return wrap(label, err)
		}
	}
	if errors.Is(err, redis.Nil) {
		return nil
	}
	return wrap(label, err) // of a new connection that was refused
}

// inChunks runs do for at most maxPipelined records at a time and returns all results, in
// their order.
func inChunks[T, R any](records []T, do func(chunk []T) ([]R, error)) ([]R, error) {
	results := make([]R, 0, len(records))
	for chunk := range slices.Chunk(records, maxPipelined) {
		found, err := do(chunk)
		if err != nil {
			return nil, err
		}
		results = append(results, found...)
	}
	return results, nil
}

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
