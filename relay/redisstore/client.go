package redisstore

import (
	"cmp"
	"context"
	"log/slog"
	"net"
	"runtime"
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
	// Retention is how long a delivery that arrived is kept; 0 means 30 days.
	Retention time.Duration
	// DeadRetention is how long a dead one is; 0 means until it is replayed.
	DeadRetention time.Duration
	// Logger takes what Check could not find out; nil means slog.Default.
	Logger *slog.Logger
}

// DB is a Redis. Its methods are safe for concurrent use.
type DB struct {
	rdb  redis.UniversalClient
	link redis.UniversalOptions
	log  *slog.Logger
	// walks holds back all but a few walks through long lists: each reads for up
	// to a second, and who wants a page by its rank must not wait for that.
	walks chan struct{}

	retention, deadRetention time.Duration
}

// Open prepares the connection to a Redis. It fails only for a URL that makes
// no sense: a server that does not answer is no error, since the gateway
// accepts while Redis is down.
func Open(_ context.Context, o Options) (*DB, error) {
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
	log := o.Logger
	if log == nil {
		log = slog.Default()
	}
	plain(link)
	// It prints every connection that fails; callers are told each as an error.
	logging.Disable()
	return &DB{
		rdb: redis.NewUniversalClient(link), link: *link, log: log, walks: make(chan struct{}, maxWalks),
		retention: cmp.Or(max(o.Retention, 0), endedRetention), deadRetention: max(o.DeadRetention, 0),
	}, nil
}

// plain asks for nothing that an older server, a proxy or the embedded server
// would not know, and fails quickly: callers wait and try again on their own.
func plain(link *redis.UniversalOptions) {
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
	return wrap("redis: ping", d.rdb.Ping(ctx).Err())
}

// Close closes every connection; calls under way fail.
func (d *DB) Close() error { return d.rdb.Close() }
