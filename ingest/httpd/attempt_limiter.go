package httpd

import (
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"log/slog"
	"maps"
	"net/netip"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/gofiber/fiber/v2"

	"github.com/penstock/penstock/relay"
)

// The limits of wrong credentials: a burst of attempts, and then one attempt per guessInterval.
// After the limit of an account is reached, each site has a small limit for the account. IPv6
// addresses are limited by their /64 network. A site is an IPv4 address or a /48 network, which
// providers usually assign to a customer.
const (
	guessesPerAddress = 60
	guessesPerSite    = 240
	guessesPerAccount = 60
	guessesPerPair    = 3 // for a site and an account
	guessInterval     = 6 * time.Second
	// exemptionTime is the time for which a right credential is exempt from the limits at its
	// address.
	exemptionTime = 24 * time.Hour
	// maxGuessKeys is the number of entries at which AttemptLimiter clears one of its two maps.
	maxGuessKeys = 100_000
)

// Attempt is a credential presented by a client.
type Attempt struct {
	Address netip.Addr
	Account string            // the account to log in to; empty if unknown
	Sum     [sha256.Size]byte // SHA-256 of the credential
	// Surface is the first segment of the route's path. Surface and RequestID do not affect the
	// limits.
	Surface, RequestID string
}

// AttemptOf returns the attempt of a request to log in to an account with a secret.
func AttemptOf(c *fiber.Ctx, account, secret string) Attempt {
	return attemptOf(c, account, sha256.Sum256([]byte(secret)))
}

func attemptOf(c *fiber.Ctx, account string, sum [sha256.Size]byte) Attempt {
	if len(account) > 100 { // limits the memory of the maps
		sum := sha256.Sum256([]byte(account))
		account = hex.EncodeToString(sum[:])
	}
	surface, _, _ := strings.Cut(strings.TrimPrefix(c.Route().Path, "/"), "/") // webhooks, v2, soap, admin
	return Attempt{Address: ClientAddr(c), Account: account, Sum: sum, Surface: cmp.Or(surface, "other"), RequestID: RequestID(c.UserContext())}
}

// limitKey is the subject of a limit: an address, a site, an account, a site and an account, or
// an address and a credential.
type limitKey struct {
	Address netip.Addr
	Site    bool // Address is the address of a site
	Account string
	Sum     [sha256.Size]byte
}

// AttemptLimiter limits wrong credentials by address, site and account, in memory. It is safe for
// concurrent use.
//
// Attempts of other clients do not lock out a right credential. The limits do not apply to a
// credential that was right at the same address within exemptionTime, and an account under attack
// can be used from other sites. A repeated wrong credential counts once for its address, so that a
// sender with a wrong token does not lock out other senders at the same address.
type AttemptLimiter struct {
	Logger *slog.Logger // nil means slog.Default; must be set before use
	// InventoryPending reports whether an inventory that may declare credentials has not been applied
	// yet; nil means that there is no inventory. It must be set before use.
	InventoryPending func() bool

	now        func() time.Time
	wasPending atomic.Bool // InventoryPending has been true since fullAt was cleared

	mu                   sync.Mutex
	fullAt               map[limitKey]time.Time // key → time at which the whole burst is available again
	rightAt              map[limitKey]time.Time // address and credential → last time at which it was right
	wrongCounts, refused map[string]uint64      // by surface
}

// NewAttemptLimiter returns an AttemptLimiter that reads the time from now.
func NewAttemptLimiter(now func() time.Time) *AttemptLimiter {
	return &AttemptLimiter{
		now: now, fullAt: make(map[limitKey]time.Time), rightAt: make(map[limitKey]time.Time),
		wrongCounts: make(map[string]uint64), refused: make(map[string]uint64),
	}
}

// Counts returns, by surface, the numbers of wrong credentials and of attempts that were refused
// without a check since the start.
func (l *AttemptLimiter) Counts() (wrong, refused map[string]uint64) {
	l.mu.Lock()
	defer l.mu.Unlock()
	return maps.Clone(l.wrongCounts), maps.Clone(l.refused)
}

// CheckInventory returns an error while an inventory has not been applied, because the inventory may
// declare a credential that does not exist yet. It must be called before the credential is looked
// up. All wrong credentials get the same answer, which does not reveal which of them exist.
func (l *AttemptLimiter) CheckInventory() error {
	if l.InventoryPending == nil || !l.InventoryPending() {
		return nil
	}
	l.wasPending.Store(true)
	return relay.Errorf(relay.KindUnavailable, "the inventory has not been applied yet")
}

// Wait returns the time after which the credential of an attempt may be checked; 0 means now.
func (l *AttemptLimiter) Wait(a Attempt) time.Duration {
	now := l.now()
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.wasPending.Load() && !l.InventoryPending() { // the inventory may have declared the counted credentials
		l.wasPending.Store(false)
		clear(l.fullAt)
	}
	if t, ok := l.rightAt[a.credentialKey()]; ok && now.Sub(t) < exemptionTime {
		return 0
	}
	wait := max(l.waitFor(a.addressKey(), guessesPerAddress, now), l.waitFor(a.credentialKey(), guessesPerAddress, now))
	wait = max(wait, l.waitFor(a.siteKey(), guessesPerSite, now))
	if a.Account != "" && l.waitFor(a.accountKey(), guessesPerAccount, now) > 0 {
		wait = max(wait, l.waitFor(a.siteAccountKey(), guessesPerPair, now))
	}
	if wait > 0 {
		l.refused[a.Surface]++
	}
	return wait
}

// RecordSuccess records that the credential of an attempt was right.
func (l *AttemptLimiter) RecordSuccess(a Attempt) {
	now := l.now()
	l.mu.Lock()
	defer l.mu.Unlock()
	if now.Sub(l.rightAt[a.credentialKey()]) < time.Hour {
		return
	}
	if len(l.rightAt) >= maxGuessKeys {
		clear(l.rightAt)
	}
	l.rightAt[a.credentialKey()] = now
}

// RecordFailure counts and logs an attempt with a wrong credential.
func (l *AttemptLimiter) RecordFailure(a Attempt) {
	log := cmp.Or(l.Logger, slog.Default()).With("request_id", a.RequestID)
	log.Warn("sign-in refused: wrong credential", "surface", a.Surface, "address", a.Address.String(), "account", a.Account)
	if l.count(a) {
		log.Warn("too many wrong credentials, further ones are refused", "address", a.Address.String(), "account", a.Account)
	}
}

// count counts a wrong attempt and reports whether it reached a limit.
func (l *AttemptLimiter) count(a Attempt) (limited bool) {
	now := l.now()
	l.mu.Lock()
	defer l.mu.Unlock()
	l.wrongCounts[a.Surface]++
	delete(l.rightAt, a.credentialKey())
	repeated := l.fullAt[a.credentialKey()].After(now)
	l.spend(a.credentialKey(), guessesPerAddress, now)
	if repeated {
		return false
	}
	limited = l.spend(a.addressKey(), guessesPerAddress, now)
	limited = l.spend(a.siteKey(), guessesPerSite, now) || limited
	if a.Account != "" {
		l.spend(a.siteAccountKey(), guessesPerPair, now)
		limited = l.spend(a.accountKey(), guessesPerAccount, now) || limited
	}
	return limited
}

func (a Attempt) credentialKey() limitKey { return limitKey{Address: a.Address, Sum: a.Sum} }
func (a Attempt) addressKey() limitKey    { return limitKey{Address: a.Address} }
func (a Attempt) accountKey() limitKey    { return limitKey{Account: a.Account} }
func (a Attempt) siteKey() limitKey       { return limitKey{Address: a.site(), Site: true} }
func (a Attempt) siteAccountKey() limitKey {
	return limitKey{Address: a.site(), Site: true, Account: a.Account}
}

// site returns the address of the attempt's site.
func (a Attempt) site() netip.Addr {
	if a.Address.Is6() {
		return netip.PrefixFrom(a.Address, 48).Masked().Addr()
	}
	return a.Address
}

// waitFor returns the time until another attempt with a key is allowed; 0 means now.
func (l *AttemptLimiter) waitFor(k limitKey, limit int, now time.Time) time.Duration {
	fullAt := l.fullAt[k]
	if !fullAt.After(now) {
		return 0
	}
	return max(0, fullAt.Sub(now)-time.Duration(limit-1)*guessInterval)
}

// spend counts an attempt with a key and reports whether the attempt reached the limit.
func (l *AttemptLimiter) spend(k limitKey, limit int, now time.Time) (exhausted bool) {
	if len(l.fullAt) >= maxGuessKeys {
		for k, fullAt := range l.fullAt {
			if !fullAt.After(now) {
				delete(l.fullAt, k)
			}
		}
		if len(l.fullAt) >= maxGuessKeys {
			clear(l.fullAt)
		}
	}
	fullAt := l.fullAt[k]
	if fullAt.Before(now) {
		fullAt = now
	}
	wait := l.waitFor(k, limit, now)
	l.fullAt[k] = fullAt.Add(guessInterval)
	return wait == 0 && l.waitFor(k, limit, now) > 0
}

// RetryAfter formats a duration for the header Retry-After: whole seconds, at least one.
func RetryAfter(wait time.Duration) string {
	return strconv.Itoa(max(1, int((wait+time.Second-1)/time.Second)))
}

// TooManyAttempts is the message of answers with status 429.
const TooManyAttempts = "Too Many Attempts."

// tooMany sets Retry-After and returns the error for an attempt that must wait.
func tooMany(c *fiber.Ctx, wait time.Duration) error {
	c.Set(fiber.HeaderRetryAfter, RetryAfter(wait))
	return fiber.NewError(fiber.StatusTooManyRequests, TooManyAttempts)
}
