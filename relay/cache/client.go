package cache

import (
	"cmp"
	"context"
	"crypto/rand"
	"log/slog"
	"net"
	"runtime"
	"slices"
	"strconv"
	"time"

	"github.com/redis/go-redis/v9"
	"github.com/redis/go-redis/v9/logging"
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
	// MaxMarks is how many frames are remembered at most for the duplicate check, the
	// last half of them in any case; 0 means all of its time. No other gateway may use
	// the Redis then.
	MaxMarks int
	// Logger takes what Check could not find out; nil means slog.Default.
	Logger *slog.Logger
	// Now is the clock; nil means time.Now.
	Now func() time.Time
	// Observe is called with the time of each command ("command") and of each pipeline
	// ("pipeline"); nil is not called.
	Observe func(operation string, took time.Duration)
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
	// It prints every connection that fails; callers get each as an error.
	logging.Disable()
	db := &DB{rdb: redis.NewUniversalClient(link), link: *link, log: cmp.Or(o.Logger, slog.Default()), now: o.Now, seen: &turns{most: o.MaxMarks / 2}}
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
func (d *DB) Databases(ctx context.Context, database string, now time.Time, within time.Duration) (others []string, err error) {
	pipe := d.rdb.Pipeline()
	pipe.ZAdd(ctx, keyDatabases(), redis.Z{Score: float64(now.UnixMilli()), Member: database})
	pipe.ZRemRangeByScore(ctx, keyDatabases(), "-inf", strconv.FormatInt(now.Add(-within).UnixMilli(), 10))
	all := pipe.ZRange(ctx, keyDatabases(), 0, -1)
	pipe.Expire(ctx, keyDatabases(), time.Hour)
	if _, err := pipe.Exec(ctx); err != nil {
		return nil, wrap("redis databases", err)
	}
	return slices.DeleteFunc(all.Val(), func(one string) bool { return one == database }), nil
}
