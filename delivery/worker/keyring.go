package worker

import (
	"context"
	"fmt"
	"sync"
	"time"

	"github.com/penstock/penstock/delivery"
	"github.com/penstock/penstock/relay/account"
)

// keyring caches the signing keys of accounts.
type keyring struct {
	load func(ctx context.Context, acct account.ID) ([]string, error)
	ttl  time.Duration
	now  func() time.Time

	mu    sync.Mutex
	cache map[account.ID]keys
}

type keys struct {
	keys [][]byte
	err  error // a secret is invalid
	at   time.Time
}

func newKeyring(load func(context.Context, account.ID) ([]string, error), ttl time.Duration, now func() time.Time) *keyring {
	return &keyring{load: load, ttl: ttl, now: now, cache: make(map[account.ID]keys)}
}

// of returns an account's keys. A failure to load them is delivery.OwnFault; an invalid
// secret would fail every attempt, so it is delivery.Unsendable.
func (r *keyring) of(ctx context.Context, acct account.ID) ([][]byte, error) {
	if r.load == nil {
		return nil, nil
	}
	r.mu.Lock()
	k, ok := r.cache[acct]
	r.mu.Unlock()
	if ok && r.now().Sub(k.at) < r.ttl {
		return k.keys, k.err
	}
	secrets, err := r.load(ctx, acct)
	if err != nil && !ok {
		return nil, delivery.OwnFault(fmt.Errorf("webhook secret: %w", err))
	}
	if err == nil {
		k = parseKeys(secrets)
	}
	k.at = r.now()
	r.mu.Lock()
	r.cache[acct] = k
	r.mu.Unlock()
	return k.keys, k.err
}

func parseKeys(secrets []string) (k keys) {
	for _, s := range secrets {
		key, err := parseSecret(s)
		if err != nil {
			return keys{err: delivery.Unsendable(err)}
		}
		k.keys = append(k.keys, key)
	}
	return k
}
