package redisstore

import (
	"context"
	"testing"
	"time"

	"github.com/penstock/penstock/delivery/embedded/kv"
	"github.com/penstock/penstock/relay/redisstore/redistest"
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
			for _, n := range c.Nodes {
				flush(t, openURL(t, n.URL))
			}
			return openURL(t, c.URL)
		})
	})
	t.Run("on the embedded server", func(t *testing.T) {
		suite(t, openEmbedded)
	})
}

func openURL(t testing.TB, url string) *DB {
	t.Helper()
	db, err := Open(t.Context(), Options{URL: url})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = db.Close() })
	return db
}

func openEmbedded(t *testing.T) *DB {
	t.Helper()
	s, err := kv.Open(t.TempDir(), kv.Options{})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = s.Close() })
	db, err := Open(t.Context(), Options{Dialer: s.Dial})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = db.Close() })
	return db
}

func flush(t testing.TB, db *DB) {
	t.Helper()
	if err := db.rdb.FlushAll(context.Background()).Err(); err != nil {
		t.Fatal(err)
	}
}

// at is a time of the tests, s seconds after their beginning.
func at(s float64) time.Time {
	return time.Date(2026, 11, 21, 12, 0, 0, 0, time.UTC).Add(time.Duration(s * float64(time.Second)))
}

func benchServer(b *testing.B) *DB {
	b.Helper()
	return openURL(b, redistest.Start(b, "--appendonly", "no").URL)
}
