package inbound

import (
	"context"
	"slices"
	"sync"

	"github.com/penstock/penstock/relay"
)

// maxCachedNumbers bounds the cached numbers; beyond it the cache is cleared.
const maxCachedNumbers = 50_000

// routeCache caches the routes of numbers until any relay changes. Every batch
// reads the version, so that a change takes effect with the next message.
type routeCache struct {
	store *Store

	mu       sync.Mutex
	version  int64
	numbers  map[string][]*Route
	compiled map[Ref]*Route
}

// routes returns the routes of numbers. An invalid number has no routes.
func (c *routeCache) routes(ctx context.Context, numbers []string) (map[string][]*Route, error) {
	// The version is read before the relays, so that relays that are cached under a version
	// are never older.
	version, err := c.store.Version(ctx)
	if err != nil {
		return nil, err
	}
	routes, missing := c.lookup(version, numbers)
	if len(missing) == 0 {
		return routes, nil
	}
	candidates, err := c.store.Candidates(ctx, missing)
	if err != nil {
		return nil, err
	}
	c.add(version, missing, candidates, routes)
	return routes, nil
}

// lookup returns the routes that are cached under a version, and the numbers without cached
// routes.
func (c *routeCache) lookup(version int64, numbers []string) (known map[string][]*Route, missing []string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.numbers == nil || c.version != version || len(c.numbers) > maxCachedNumbers {
		c.version, c.numbers, c.compiled = version, make(map[string][]*Route), make(map[Ref]*Route)
	}
	known = make(map[string][]*Route, len(numbers))
	for _, n := range numbers {
		if _, seen := known[n]; seen || !relay.Digits(n) || len(n) > maxDigits {
			continue
		}
		routes, ok := c.numbers[n]
		if !ok {
			missing = append(missing, n)
		}
		known[n] = routes
	}
	return known, missing
}

// add compiles relays and adds their routes to known. It caches them unless the version has
// changed in the meantime, or a relay cannot be decrypted, which may change without a new version.
func (c *routeCache) add(version int64, numbers []string, candidates [][]Relay, known map[string][]*Route) {
	c.mu.Lock()
	defer c.mu.Unlock()
	unchanged := c.version == version
	for i, n := range numbers {
		current := unchanged && !slices.ContainsFunc(candidates[i], func(r Relay) bool { return r.Undecryptable })
		routes := make([]*Route, len(candidates[i]))
		for j, r := range candidates[i] {
			route, ok := c.compiled[r.Ref()]
			if !ok || !current {
				route = Compile(r)
			}
			if routes[j] = route; current {
				c.compiled[r.Ref()] = route
			}
		}
		known[n] = routes
		if current {
			c.numbers[n] = routes
		}
	}
}
