// Package cache keeps in Redis what can be rebuilt, and is the only door to
// go-redis: marks of frames seen, posts of one frame, latest
// values and when devices were heard (IoT), breakers that are open (Breakers).
// asynq gets its own connections from DB.MakeRedisClient.
//
// Redis may be emptied, fail over or be replaced at any moment, so nothing here
// is a record: callers go on without it, and what they read may be missing. All
// of it expires.
//
// One code path serves Redis 6.2 and later, Sentinel, Cluster and the embedded
// server: plain commands in pipelines, no scripts. Where two gateways change the
// same thing at once, it is written so that the order does not matter: a field
// for each value, of which readers take the newest, or a sorted set whose scores
// only grow. The hash tag of an account's keys puts them into one slot.
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
	seen *turns
}

// Open prepares the connection to a Redis. It fails only for a URL that makes
// no sense: a server that does not answer is no error, since the gateway
// accepts while Redis is down.
func Open(o Options) (*DB, error) {
	link, err := ParseURL(o.URL)
	if err != nil {
		return nil, err
	}
	link.Dialer = o.Dialer
	link.PoolSize = o.PoolSize
	if link.PoolSize <= 0 {
		link.PoolSize = 10 * runtime.GOMAXPROCS(0)
	}
	timeout := o.Timeout
	if timeout <= 0 {
		timeout = 3 * time.Second
	}
	link.DialTimeout, link.ReadTimeout, link.WriteTimeout = timeout, timeout, timeout
	link.ContextTimeoutEnabled = true
	setMinimalProtocol(link)
	db := &DB{rdb: redis.NewUniversalClient(link), link: *link, log: cmp.Or(o.Logger, slog.Default()), now: o.Now, seen: &turns{limit: o.MaxMarks / 2}}
	if db.now == nil {
		db.now = time.Now
	}
	if o.Observe != nil {
		db.rdb.AddHook(timed{o.Observe})
	}
	return db, nil
}

// setMinimalProtocol asks for nothing that an older server, a proxy or the embedded server
// would not know, and fails quickly: callers wait and try again on their own.
func setMinimalProtocol(link *redis.UniversalOptions) {
	link.Protocol = 2
	link.DisableIdentity = true
	link.DialerRetries = 1
	link.MaintNotificationsConfig = &maintnotifications.Config{Mode: maintnotifications.ModeDisabled}
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

// ID names this Redis: a random text that is kept in it, so that gateways see
// whether they share one. An emptied Redis is another one.
func (d *DB) ID(ctx context.Context) (string, error) {
	id := rand.Text()
	set, err := d.rdb.SetNX(ctx, keyID(), id, 0).Result()
	if err != nil {
		return "", wrap("redis id", err)
	}
	if set {
		return id, nil
	}
	id, err = d.rdb.Get(ctx, keyID()).Result()
	return id, wrap("redis id", err)
}

// Databases notes that gateways on a database use this Redis now, and returns the
// other databases whose gateways did so within the given time.
func (d *DB) Databases(ctx context.Context, database string, now time.Time, duration time.Duration) (otherTexts []string, err error) {
	pipe := d.rdb.Pipeline()
	pipe.ZAdd(ctx, keyDatabases(), redis.Z{Score: float64(now.UnixMilli()), Member: database})
	pipe.ZRemRangeByScore(ctx, keyDatabases(), "-inf", strconv.FormatInt(now.Add(-duration).UnixMilli(), 10))
	stringSliceCmd := pipe.ZRange(ctx, keyDatabases(), 0, -1)
	pipe.Expire(ctx, keyDatabases(), time.Hour)
	if _, err := pipe.Exec(ctx); err != nil {
		return nil, wrap("redis databases", err)
	}
	return slices.DeleteFunc(stringSliceCmd.Val(), func(text string) bool { return text == database }), nil
}

// atOnce is the number of records in one round trip, which has to be answered within one
// timeout.
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

// inChunks runs do for at most atOnce items at a time and returns all results, in their
// order.
func inChunks[T, R any](records []T, do func(chunk []T) ([]R, error)) ([]R, error) {
	out := make([]R, 0, len(records))
	for chunk := range slices.Chunk(records, atOnce) {
		results, err := do(chunk)
		if err != nil {
			return nil, err
		}
		out = append(out, results...)
	}
	return out, nil
}

// timed reports the time of each command and pipeline.
type timed struct {
	observe func(operation string, took time.Duration)
}

// DialHook implements redis.Hook.
func (timed) DialHook(nextDialHook redis.DialHook) redis.DialHook { return nextDialHook }

// ProcessHook implements redis.Hook.
func (t timed) ProcessHook(nextProcessHook redis.ProcessHook) redis.ProcessHook {
	return func(ctx context.Context, cmd redis.Cmder) error {
		began := time.Now()
		err := nextProcessHook(ctx, cmd)
		t.observe("command", time.Since(began))
		return err
	}
}

// ProcessPipelineHook implements redis.Hook.
func (t timed) ProcessPipelineHook(nextProcessPipelineHook redis.ProcessPipelineHook) redis.ProcessPipelineHook {
	return func(ctx context.Context, cmds []redis.Cmder) error {
		began := time.Now()
		err := nextProcessPipelineHook(ctx, cmds)
		t.observe("pipeline", time.Since(began))
		return err
	}
}
