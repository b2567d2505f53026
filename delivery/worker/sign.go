package worker

import (
	"context"
	"crypto/hmac"
	"crypto/sha256"
	"encoding/base64"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/penstock/penstock/delivery"
	"github.com/penstock/penstock/relay"
)

// webhookHeaders returns the headers of Standard Webhooks: the id, the timestamp and, if
// there are keys, a v1 signature for each key. A signature is the base64 of HMAC-SHA256
// over "id.timestamp.body".
func webhookHeaders(keys [][]byte, id string, t time.Time, body []byte) map[string]string {
	timestamp := strconv.FormatInt(t.Unix(), 10)
	headers := map[string]string{"webhook-id": id, "webhook-timestamp": timestamp}
	if len(keys) == 0 {
		return headers
	}
	signatures := make([]string, len(keys))
	for i, key := range keys {
		mac := hmac.New(sha256.New, key)
		mac.Write([]byte(id + "." + timestamp + "."))
		mac.Write(body)
		signatures[i] = "v1," + base64.StdEncoding.EncodeToString(mac.Sum(nil))
	}
	headers["webhook-signature"] = strings.Join(signatures, " ")
	return headers
}

// parseSecret decodes a secret: "whsec_" and base64. As in libraries that verify
// signatures, the prefix is optional.
func parseSecret(secret string) ([]byte, error) {
	key, err := base64.StdEncoding.DecodeString(strings.TrimPrefix(secret, "whsec_"))
	if err != nil || len(key) == 0 {
		return nil, errors.New("webhook secret: must be whsec_ and base64")
	}
	return key, nil
}

// keyTTL is the time for which an account's keys are cached. While the secrets cannot be
// loaded, older keys are used.
const keyTTL = 30 * time.Second

// keyring caches the signing keys of accounts.
type keyring struct {
	load func(ctx context.Context, acct relay.AccountID) ([]string, error)
	now  func() time.Time

	mu    sync.Mutex
	cache map[relay.AccountID]cachedKeys
}

type cachedKeys struct {
	keys     [][]byte
	err      error // a secret is invalid
	loadedAt time.Time
}

// keysOf returns an account's keys. The error is delivery.OwnFault if the secrets cannot be
// loaded and no keys are cached. An invalid secret is delivery.Unsendable, because it would fail every attempt.
func (k *keyring) keysOf(ctx context.Context, acct relay.AccountID) ([][]byte, error) {
	if k.load == nil {
		return nil, nil
	}
	k.mu.Lock()
	cached, ok := k.cache[acct]
	k.mu.Unlock()
	if ok && k.now().Sub(cached.loadedAt) < keyTTL {
		return cached.keys, cached.err
	}
	secrets, err := k.load(ctx, acct)
	if err != nil && !ok {
		return nil, delivery.OwnFault(fmt.Errorf("webhook secret: %w", err))
	}
	if err == nil {
		cached = cachedKeys{}
		for _, secret := range secrets {
			key, err := parseSecret(secret)
			if err != nil {
				cached = cachedKeys{err: delivery.Unsendable(err)}
				break
			}
			cached.keys = append(cached.keys, key)
		}
	}
	cached.loadedAt = k.now()
	k.mu.Lock()
	k.cache[acct] = cached
	k.mu.Unlock()
	return cached.keys, cached.err
}
