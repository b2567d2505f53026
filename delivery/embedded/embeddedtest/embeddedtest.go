// Package embeddedtest opens embedded back ends for tests.
package embeddedtest

import (
	"errors"
	"testing"

	"github.com/penstock/penstock/delivery/embedded/redis"
	"github.com/penstock/penstock/relay/cache"
	"github.com/penstock/penstock/relay/relaytest"
)

// Cache opens an empty cache and closes it when the test ends.
func Cache(t testing.TB) *cache.DB {
	t.Helper()
	server, err := redis.Start(redis.Options{})
	relaytest.NoError(t, err)
	db, err := cache.Open(cache.Options{Dialer: server.Dial})
	relaytest.NoError(t, err)
	t.Cleanup(func() { _ = errors.Join(db.Close(), server.Close()) })
	return db
}
