// Package cachetest opens caches for tests of other packages.
package cachetest

import (
	"testing"

	"github.com/penstock/penstock/relay/cache"
	"github.com/penstock/penstock/relay/cache/redistest"
)

// Open opens a cache on a Redis database of the test's own.
func Open(t testing.TB) *cache.DB {
	t.Helper()
	return OpenURL(t, redistest.Shared(t).NewDatabase(t))
}

// OpenURL opens a cache on a Redis.
func OpenURL(t testing.TB, url string) *cache.DB {
	t.Helper()
	db, err := cache.Open(cache.Options{URL: url})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = db.Close() })
	return db
}
