// Package cache stores data in Redis that can be rebuilt: the marks and posts of frames,
// the latest values of devices and the times of their last frames (IoT), and open breakers
// (Breakers). It is the only package that uses go-redis. asynq gets its own connections from
// DB.MakeRedisClient.
//
// Redis may be emptied, fail over or be replaced at any time. Callers continue without it,
// and any value may be missing. All keys except one expire.
//
// The package uses plain commands in pipelines, without scripts, so that it works with Redis
// 6.2 and later, Sentinel, Cluster and the embedded server. If two gateways change the same
// data, the order of the changes does not matter: each value has its own field, and readers
// use the newest, or a score that only increases. The hash tag of an account's keys puts them
// into one slot.
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

// Options configures a DB. The zero value is redis://127.0.0.1:6379.
type Options struct {
	// URL is redis://, rediss://, redis+sentinel:// or redis+cluster://, see
	// ParseURL.
	URL string
	// Dialer connects to the embedded server; nil uses the network.
	Dialer func(ctx context.Context, network, addr string) (net.Conn, error)
	// Timeout limits connecting and each response; 0 means 3 s.
	Timeout time.Duration
	// MaxMarks limits the frames that are stored for the duplicate check: at least MaxMarks/2
	// and at most MaxMarks of the newest frames are stored. 0 means no limit. With a limit, no
	// other gateway may use the same Redis.
	MaxMarks int
	// Logger receives the warnings of Check; nil means slog.Default.
	Logger *slog.Logger
	// Now is the clock; nil means time.Now.
	Now func() time.Time
	// Observe is called with the duration of each command ("command") and of each pipeline
	// ("pipeline"), unless it is nil.
	Observe func(operation string, took time.Duration)
}

// SetLogger sets the logger of go-redis for the whole process. Messages have debug level,
// because go-redis logs each failed connection, which callers also get as an error.
func SetLogger(log *slog.Logger) { redis.SetLogger(redisLog{log}) }

type redisLog struct{ *slog.Logger }

// Printf implements the logger of go-redis.
func (l redisLog) Printf(ctx context.Context, format string, args ...any) {
	l.DebugContext(ctx, "redis", "text", fmt.Sprintf(format, args...))
}

// DB is a connection to Redis. Its methods are safe for concurrent use.
type DB struct {
	rdb   redis.UniversalClient
	opts  redis.UniversalOptions
	log   *slog.Logger
	now   func() time.Time
	spans *spanLimit
}

// Open prepares the connection to Redis. It returns an error only for an invalid URL, because
// the gateway accepts traffic while Redis is down.
func Open(o Options) (*DB, error) {
	opts, err := ParseURL(o.URL)
	if err != nil {
		return nil, err
	}
	opts.Dialer = o.Dialer
	opts.PoolSize = 10 * runtime.GOMAXPROCS(0)
	timeout := cmp.Or(max(o.Timeout, 0), 3*time.Second)
	opts.DialTimeout, opts.ReadTimeout, opts.WriteTimeout = timeout, timeout, timeout
	opts.ContextTimeoutEnabled = true
	// The client uses only features that older servers, proxies and the embedded server have,
	// and fails quickly, because callers retry.
	opts.Protocol, opts.DisableIdentity, opts.DialerRetries = 2, true, 1
	opts.MaintNotificationsConfig = &maintnotifications.Config{Mode: maintnotifications.ModeDisabled}
	db := &DB{rdb: redis.NewUniversalClient(opts), opts: *opts, log: cmp.Or(o.Logger, slog.Default()), now: o.Now, spans: &spanLimit{maxMarks: o.MaxMarks / 2}}
	if db.now == nil {
		db.now = time.Now
	}
	if o.Observe != nil {
		db.rdb.AddHook(observer{o.Observe})
	}
	return db, nil
}

// MakeRedisClient returns a new go-redis client for the same Redis, which the caller must
// close. It makes DB an asynq.RedisConnOpt.
func (d *DB) MakeRedisClient() any {
	opts := d.opts
	return redis.NewUniversalClient(&opts)
}

// Ping returns an error if Redis does not respond.
func (d *DB) Ping(ctx context.Context) error { return wrap("", d.rdb.Ping(ctx).Err()) }

// Close closes every connection. Running calls fail.
func (d *DB) Close() error { return d.rdb.Close() }

// ID returns a random text that is stored in this Redis. Gateways with the same ID share one
// Redis. An emptied Redis gets a new ID.
func (d *DB) ID(ctx context.Context) (string, error) {
	if err := d.rdb.SetNX(ctx, keyID(), rand.Text(), 0).Err(); err != nil {
		return "", wrap("redis id", err)
	}
	id, err := d.rdb.Get(ctx, keyID()).Result()
	return id, wrap("redis id", err)
}

// RegisterDatabase records that gateways of a database use this Redis now, and returns the other
// databases whose gateways have used it within the window.
func (d *DB) RegisterDatabase(ctx context.Context, database string, now time.Time, window time.Duration) (otherDatabases []string, err error) {
	pipe := d.rdb.Pipeline()
	pipe.ZAdd(ctx, keyDatabases(), redis.Z{Score: float64(now.UnixMilli()), Member: database})
	pipe.ZRemRangeByScore(ctx, keyDatabases(), "-inf", strconv.FormatInt(now.Add(-window).UnixMilli(), 10))
	databases := pipe.ZRange(ctx, keyDatabases(), 0, -1)
	pipe.Expire(ctx, keyDatabases(), time.Hour)
	if _, err := pipe.Exec(ctx); err != nil {
		return nil, wrap("redis databases", err)
	}
	return slices.DeleteFunc(databases.Val(), func(name string) bool { return name == database }), nil
}

// maxPipelined is the maximum number of records in one round trip, which must complete within
// one timeout.
const maxPipelined = 1000

// pipeline runs the commands that queue adds in one round trip. A missing key or field is not
// an error.
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
	return wrap(label, err) // the error of a new connection that was refused
}

// inChunks calls do with at most maxPipelined records at a time and returns the results of all
// records in the order of the records.
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

type observer struct {
	observe func(operation string, took time.Duration)
}

// DialHook implements redis.Hook.
func (observer) DialHook(next redis.DialHook) redis.DialHook { return next }

// ProcessHook implements redis.Hook.
func (o observer) ProcessHook(next redis.ProcessHook) redis.ProcessHook {
	return func(ctx context.Context, cmd redis.Cmder) error {
		start := time.Now()
		err := next(ctx, cmd)
		o.observe("command", time.Since(start))
		return err
	}
}

// ProcessPipelineHook implements redis.Hook.
func (o observer) ProcessPipelineHook(next redis.ProcessPipelineHook) redis.ProcessPipelineHook {
	return func(ctx context.Context, cmds []redis.Cmder) error {
		start := time.Now()
		err := next(ctx, cmds)
		o.observe("pipeline", time.Since(start))
		return err
	}
}
