package cache

import (
	"context"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	embedded "github.com/penstock/penstock/delivery/embedded/redis"
	"github.com/penstock/penstock/relay/cache/redistest"
)

// onEvery runs a suite on each kind of Redis the gateway works with.
func onEvery(t *testing.T, suite func(t *testing.T, open func(t *testing.T) *DB)) {
	t.Run("on a server", func(t *testing.T) {
		s := redistest.Start(t)
		suite(t, func(t *testing.T) *DB {
			db := openURL(t, s.URL)
			flush(t, db)
			return db
		})
	})
	t.Run("on a cluster", func(t *testing.T) {
		c := redistest.StartCluster(t)
		suite(t, func(t *testing.T) *DB {
			db := openURL(t, c.URL)
			flush(t, db)
			return db
		})
	})
	t.Run("on the embedded server", func(t *testing.T) {
		suite(t, func(t *testing.T) *DB { return openEmbedded(t) })
	})
}

func openURL(t testing.TB, url string) *DB {
	t.Helper()
	db, err := Open(Options{URL: url})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = db.Close() })
	return db
}

func openEmbedded(t testing.TB) *DB {
	t.Helper()
	s, err := embedded.Start(embedded.Options{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = s.Close() })
	db, err := Open(Options{Dialer: s.Dial})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = db.Close() })
	return db
}

func flush(t testing.TB, db *DB) {
	t.Helper()
	err := db.rdb.FlushAll(context.Background()).Err()
	if cluster, ok := db.rdb.(*redis.ClusterClient); ok {
		err = cluster.ForEachMaster(context.Background(), func(ctx context.Context, c *redis.Client) error { return c.FlushAll(ctx).Err() })
	}
	if err != nil {
		t.Fatal(err)
	}
}

// at is a time of the tests, s seconds after their beginning.
func at(s float64) time.Time {
	return time.Date(2026, 11, 21, 12, 0, 0, 0, time.UTC).Add(time.Duration(s * float64(time.Second)))
}
