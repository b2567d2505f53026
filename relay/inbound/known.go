package inbound

import (
	"context"
	"sync"

	"github.com/penstock/penstock/relay/account"
)

// maxKnown bounds how many numbers are remembered; beyond it all are forgotten.
const maxKnown = 50_000

// known remembers the routes of numbers for as long as no relay changes: the
// version is asked for with every batch, so that a change takes effect with the
// next message.
type known struct {
	relays Relays

	mu       sync.Mutex
	version  int64
	numbers  map[string][]*Route
	compiled map[relayKey]*Route
}

type relayKey struct {
	account account.ID
	kind    Kind
	id      string
}

// routes returns the routes of numbers; one that cannot be a number has none.
func (k *known) routes(ctx context.Context, numbers []string) (map[string][]*Route, error) {
	// The version is read before the relays: what is remembered under it is
	// never older than it.
	version, err := k.relays.Version(ctx)
	if err != nil {
		return nil, err
	}
	out, missing := k.look(version, numbers)
	if len(missing) == 0 {
		return out, nil
	}
	found, err := k.relays.Candidates(ctx, missing)
	if err != nil {
		return nil, err
	}
	k.learn(version, missing, found, out)
	return out, nil
}

// look returns what is remembered under a version, and the numbers that are not.
func (k *known) look(version int64, numbers []string) (out map[string][]*Route, missing []string) {
	k.mu.Lock()
	defer k.mu.Unlock()
	if k.numbers == nil || k.version != version || len(k.numbers) > maxKnown {
		k.version, k.numbers, k.compiled = version, make(map[string][]*Route), make(map[relayKey]*Route)
	}
	out = make(map[string][]*Route, len(numbers))
	for _, n := range numbers {
		if _, seen := out[n]; seen || !digits(n) || len(n) > maxDigits {
			continue
		}
		routes, ok := k.numbers[n]
		if !ok {
			missing = append(missing, n)
		}
		out[n] = routes
	}
	return out, missing
}

// learn compiles what was found and remembers it, unless a newer version has
// come in between.
func (k *known) learn(version int64, numbers []string, found [][]Relay, out map[string][]*Route) {
	k.mu.Lock()
	defer k.mu.Unlock()
	current := k.version == version
	for i, n := range numbers {
		routes := make([]*Route, 0, len(found[i]))
		for _, r := range found[i] {
			routes = append(routes, k.compile(r, current))
		}
		out[n] = routes
		if current {
			k.numbers[n] = routes
		}
	}
}

func (k *known) compile(r Relay, remember bool) *Route {
	key := relayKey{r.Account, r.Kind, r.ID}
	if route, ok := k.compiled[key]; ok && remember {
		return route
	}
	route := Compile(r)
	if remember {
		k.compiled[key] = route
	}
	return route
}
