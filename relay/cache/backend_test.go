package cache

import (
	"context"
	"testing"
	"time"

	"github.com/hibiken/asynq"
	"github.com/redis/go-redis/v9"

	embedded "github.com/penstock/penstock/delivery/embedded/redis"
	"github.com/penstock/penstock/relay/cache/redistest"
	"github.com/penstock/penstock/relay/iot"
	"github.com/penstock/penstock/relay/relaytest"
)

var (
	_ iot.Cache          = (*IoT)(nil)
	_ asynq.RedisConnOpt = (*DB)(nil)
)

// onEveryServer runs a suite on each kind of Redis that the gateway supports.
func onEveryServer(t *testing.T, suite func(t *testing.T, open func(t *testing.T) *DB)) {
	t.Run("on a server", func(t *testing.T) {
		suite(t, openEmpty(redistest.Shared(t).NewDatabase(t)))
	})
	t.Run("on a cluster", func(t *testing.T) {
		suite(t, openEmpty(redistest.StartCluster(t).URL))
	})
	t.Run("on the embedded server", func(t *testing.T) {
		suite(t, func(t *testing.T) *DB { return openEmbedded(t) })
	})
}

// openEmpty returns a function that empties a Redis and opens a cache on it.
func openEmpty(url string) func(*testing.T) *DB {
	return func(t *testing.T) *DB {
		t.Helper()
		db := openURL(t, url)
		flush(t, db)
		return db
	}
}

func openURL(t testing.TB, url string) *DB {
	t.Helper()
	db := relaytest.Must(Open(Options{URL: url}))(t)
	t.Cleanup(func() { _ = db.Close() })
	return db
}

func openEmbedded(t testing.TB) *DB {
	t.Helper()
	s := relaytest.Must(embedded.Start(embedded.Options{}))(t)
	t.Cleanup(func() { _ = s.Close() })
	db := relaytest.Must(Open(Options{Dialer: s.Dial}))(t)
	t.Cleanup(func() { _ = db.Close() })
	return db
}

// flush empties the database of a test. Other tests use other databases of the server.
func flush(t testing.TB, db *DB) {
	t.Helper()
	err := db.rdb.FlushDB(context.Background()).Err()
	if cluster, ok := db.rdb.(*redis.ClusterClient); ok {
		err = cluster.ForEachMaster(context.Background(), func(ctx context.Context, c *redis.Client) error { return c.FlushAll(ctx).Err() })
	}
	relaytest.NoError(t, err)
}

// timeAt returns a fixed time plus s seconds.
func timeAt(s float64) time.Time {
	return time.Date(2026, 11, 21, 12, 0, 0, 0, time.UTC).Add(time.Duration(s * float64(time.Second)))
}
