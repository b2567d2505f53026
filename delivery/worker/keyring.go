package worker

import (
	"context"
	"fmt"
	"sync"
	"time"

	"github.com/penstock/penstock/delivery"
	"github.com/penstock/penstock/relay/account"
)

// keyring remembers the signing keys of accounts.
type keyring struct {
	ask      func(ctx context.Context, acct account.ID) ([]string, error)
	remember time.Duration
	now      func() time.Time

	mu    sync.Mutex
	known map[account.ID]keys
}

type keys struct {
	keys [][]byte
	err  error // a secret that is no secret
	at   time.Time
}

func newKeyring(ask func(context.Context, account.ID) ([]string, error), remember time.Duration, now func() time.Time) *keyring {
	return &keyring{ask: ask, remember: remember, now: now, known: make(map[account.ID]keys)}
}

// of returns an account's keys. Not being able to ask is a fault of our own; a
// secret that cannot be read would fail every attempt, so that is unsendable.
func (r *keyring) of(ctx context.Context, acct account.ID) ([][]byte, error) {
	if r.ask == nil {
		return nil, nil
	}
	r.mu.Lock()
	k, ok := r.known[acct]
	r.mu.Unlock()
	if ok && r.now().Sub(k.at) < r.remember {
		return k.keys, k.err
	}
	secrets, err := r.ask(ctx, acct)
	if err != nil && !ok {
		return nil, delivery.OwnFault(fmt.Errorf("webhook secret: %w", err))
	}
	if err == nil {
		k = parseKeys(secrets)
	}
	k.at = r.now()
	r.mu.Lock()
	r.known[acct] = k
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
