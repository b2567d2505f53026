package inbound

import (
	"context"
	"slices"
	"sync"

	"github.com/penstock/penstock/relay"
)

// maxCachedNumbers bounds the cached numbers; beyond it the cache is cleared.
const maxCachedNumbers = 50_000

// relayCache caches the compiled relays of numbers until any relay changes. Every batch
// reads the version, so that a change takes effect with the next message.
type relayCache struct {
	store *Store

	mu       sync.Mutex
	version  int64
	numbers  map[string][]*CompiledRelay
	compiled map[Ref]*CompiledRelay
}

// relays returns the compiled relays of numbers. An invalid number has none.
func (c *relayCache) relays(ctx context.Context, numbers []string) (map[string][]*CompiledRelay, error) {
	// The version is read before the relays, so that relays that are cached under a version
	// are never older.
	version, err := c.store.Version(ctx)
	if err != nil {
		return nil, err
	}
	relays, missing := c.lookup(version, numbers)
	if len(missing) == 0 {
		return relays, nil
	}
	candidates, err := c.store.Candidates(ctx, missing)
	if err != nil {
		return nil, err
	}
	c.add(version, missing, candidates, relays)
	return relays, nil
}

// lookup returns the relays that are cached under a version, and the numbers without cached relays.
func (c *relayCache) lookup(version int64, numbers []string) (known map[string][]*CompiledRelay, missing []string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.numbers == nil || c.version != version || len(c.numbers) > maxCachedNumbers {
		c.version, c.numbers, c.compiled = version, make(map[string][]*CompiledRelay), make(map[Ref]*CompiledRelay)
	}
	known = make(map[string][]*CompiledRelay, len(numbers))
	for _, n := range numbers {
		if _, seen := known[n]; seen || !relay.Digits(n) || len(n) > maxDigits {
			continue
		}
		relays, ok := c.numbers[n]
		if !ok {
			missing = append(missing, n)
		}
		known[n] = relays
	}
	return known, missing
}

// add compiles candidates and adds them to known. It caches them unless the version has
// changed in the meantime, or a relay cannot be decrypted, which may change without a new version.
func (c *relayCache) add(version int64, numbers []string, candidates [][]Relay, known map[string][]*CompiledRelay) {
	c.mu.Lock()
	defer c.mu.Unlock()
	unchanged := c.version == version
	for i, n := range numbers {
		current := unchanged && !slices.ContainsFunc(candidates[i], func(r Relay) bool { return r.Undecryptable })
		relays := make([]*CompiledRelay, len(candidates[i]))
		for j, r := range candidates[i] {
			compiled, ok := c.compiled[r.Ref()]
			if !ok || !current {
				compiled = Compile(r)
			}
			if relays[j] = compiled; current {
				c.compiled[r.Ref()] = compiled
			}
		}
		known[n] = relays
		if current {
			c.numbers[n] = relays
		}
	}
}
