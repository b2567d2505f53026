package soap

import (
	"context"
	"crypto/hmac"
	"crypto/rand"
	"crypto/sha256"
	"encoding/hex"
	"sync"
	"time"

	"github.com/penstock/penstock/relay"
	"github.com/penstock/penstock/relay/account"
)

// Logins finds the login of a username; account.Store implements it.
type Logins interface {
	Login(ctx context.Context, username string) (account.Login, error)
}

const (
	// verifiedTime is the time for which a verified password is not hashed again.
	verifiedTime = 10 * time.Minute
	// maxVerified and maxRejected are the largest sizes of the two caches. The caches are
	// separate so that wrong passwords cannot evict verified ones.
	maxVerified, maxRejected = 10_000, 10_000
	// maxWait is the maximum time that a sign-in waits for the hash slot.
	maxWait = 5 * time.Second
)

// authenticator verifies usernames and passwords. It hashes one password at a time, because hashing
// is slow and a flood of wrong passwords must not use more than one processor. Clients whose
// password is in the cache do not wait. The keys of the caches are keyed digests of username,
// password and stored hash, so that a changed password is verified again.
type authenticator struct {
	logins    Logins
	now       func() time.Time
	wait      time.Duration
	check     func(hash, sum string) (bool, error)
	dummyHash string
	key       [sha256.Size]byte
	slot      chan struct{}

	mu       sync.Mutex
	verified map[digest]time.Time // the time of verification
	rejected map[digest]bool
}

type digest [sha256.Size]byte

func newAuthenticator(logins Logins, now func() time.Time) *authenticator {
	a := &authenticator{
		logins: logins, now: now, wait: maxWait, check: account.VerifyPassword, dummyHash: account.DummyHash(),
		slot: make(chan struct{}, 1), verified: make(map[digest]time.Time), rejected: make(map[digest]bool),
	}
	_, _ = rand.Read(a.key[:]) // never fails, see crypto/rand
	return a
}

// authenticate returns the account of a username and a password. The error is
// relay.KindUnauthenticated if they are wrong, relay.KindUnavailable if they cannot be verified
// now.
func (a *authenticator) authenticate(ctx context.Context, username, password string) (relay.AccountID, error) {
	login, err := a.logins.Login(ctx, username)
	known := err == nil
	if relay.KindOf(err) == relay.KindNotFound {
		login.Password, err = a.dummyHash, nil
	}
	if err != nil {
		return 0, err
	}
	sum := sha256.Sum256([]byte(password))
	ok, err := a.verify(ctx, username, login.Password, hex.EncodeToString(sum[:]))
	if err != nil {
		return 0, err
	}
	if !ok || !known {
		return 0, relay.Errorf(relay.KindUnauthenticated, "unknown username or password")
	}
	return login.Account, nil
}

// verify compares a password with the stored hash, unless the result is cached.
func (a *authenticator) verify(ctx context.Context, username, hash, sum string) (bool, error) {
	cacheKey := a.digest(username, hash, sum)
	if ok, known := a.lookUp(cacheKey); known {
		return ok, nil
	}
	if err := a.acquire(ctx); err != nil {
		return false, err
	}
	defer func() { <-a.slot }()
	if ok, known := a.lookUp(cacheKey); known { // another request verified the same password meanwhile
		return ok, nil
	}
	ok, err := a.check(hash, sum)
	if err == nil {
		a.store(cacheKey, ok)
	}
	return ok, err
}

func (a *authenticator) acquire(ctx context.Context) error {
	timeout := time.NewTimer(a.wait)
	defer timeout.Stop()
	select {
	case a.slot <- struct{}{}:
		return nil
	case <-ctx.Done():
	case <-timeout.C:
	}
	return relay.Errorf(relay.KindUnavailable, "too many sign-ins at once")
}

// digest returns a keyed hash of the three values.
func (a *authenticator) digest(username, hash, sum string) (d digest) {
	m := hmac.New(sha256.New, a.key[:])
	m.Write([]byte(username + "\x00" + hash + "\x00" + sum)) // XML holds no NUL
	m.Sum(d[:0])
	return d
}

func (a *authenticator) lookUp(cacheKey digest) (ok, known bool) {
	a.mu.Lock()
	defer a.mu.Unlock()
	verifiedAt, ok := a.verified[cacheKey]
	if ok && a.now().Sub(verifiedAt) < verifiedTime {
		return true, true
	}
	return false, a.rejected[cacheKey]
}

func (a *authenticator) store(cacheKey digest, ok bool) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if !ok {
		if len(a.rejected) >= maxRejected {
			clear(a.rejected)
		}
		a.rejected[cacheKey] = true
		return
	}
	if len(a.verified) >= maxVerified {
		clear(a.verified)
	}
	a.verified[cacheKey] = a.now()
}
