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

// Logins finds who a username belongs to; account.Store has it.
type Logins interface {
	Login(ctx context.Context, username string) (account.Login, error)
}

const (
	// verified is how long a password that was right is not hashed again.
	verified = 10 * time.Minute
	// maxVerified and maxRefused bound what is remembered. They are apart, so
	// that whoever guesses pushes out nobody who knows.
	maxVerified, maxRefused = 10_000, 10_000
	// maxWait is how long a sign-in waits for its turn to be hashed.
	maxWait = 5 * time.Second
)

// doorkeeper knows who may sign in. Passwords are hashed slowly, one at a time:
// a flood of guesses takes one processor at most, and delays nobody whose
// password was verified lately. What is remembered is a keyed digest of
// username, password and the hash that is stored, so that a password that was
// changed is verified anew.
type doorkeeper struct {
	logins Logins
	now    func() time.Time
	wait   time.Duration
	check  func(hash, sum string) (bool, error)
	nobody string
	key    [sha256.Size]byte
	turn   chan struct{}

	mu      sync.Mutex
	right   map[digest]time.Time // when it was verified
	refused map[digest]bool
}

type digest [sha256.Size]byte

func newDoorkeeper(logins Logins, now func() time.Time) *doorkeeper {
	d := &doorkeeper{
		logins: logins, now: now, wait: maxWait, check: account.VerifyPassword, nobody: account.NobodysHash(),
		turn: make(chan struct{}, 1), right: make(map[digest]time.Time), refused: make(map[digest]bool),
	}
	_, _ = rand.Read(d.key[:]) // never fails, see crypto/rand
	return d
}

// admit returns the account of a username and its password. The error is
// relay.KindUnauthenticated if they are not known, relay.KindUnavailable if
// that could not be found out now.
func (d *doorkeeper) admit(ctx context.Context, username, password string) (account.ID, error) {
	login, err := d.logins.Login(ctx, username)
	known := err == nil
	if relay.KindOf(err) == relay.KindNotFound {
		login.Password, err = d.nobody, nil
	}
	if err != nil {
		return 0, err
	}
	sum := sha256.Sum256([]byte(password))
	ok, err := d.verify(ctx, username, login.Password, hex.EncodeToString(sum[:]))
	if err != nil {
		return 0, err
	}
	if !ok || !known {
		return 0, relay.Errorf(relay.KindUnauthenticated, "unknown username or password")
	}
	return login.Account, nil
}

// verify compares a password with the stored hash, unless it has done so before.
func (d *doorkeeper) verify(ctx context.Context, username, hash, sum string) (bool, error) {
	pair := d.digest(username, hash, sum)
	if ok, known := d.recall(pair); known {
		return ok, nil
	}
	if err := d.await(ctx); err != nil {
		return false, err
	}
	defer func() { <-d.turn }()
	if ok, known := d.recall(pair); known { // somebody with the same pair was before
		return ok, nil
	}
	ok, err := d.check(hash, sum)
	if err == nil {
		d.remember(pair, ok)
	}
	return ok, err
}

func (d *doorkeeper) await(ctx context.Context) error {
	late := time.NewTimer(d.wait)
	defer late.Stop()
	select {
	case d.turn <- struct{}{}:
		return nil
	case <-ctx.Done():
	case <-late.C:
	}
	return relay.Errorf(relay.KindUnavailable, "too many sign-ins at once")
}

// digest names a triple; without the key nothing can be learned from it.
func (d *doorkeeper) digest(username, hash, sum string) (out digest) {
	m := hmac.New(sha256.New, d.key[:])
	m.Write([]byte(username + "\x00" + hash + "\x00" + sum)) // XML holds no NUL
	m.Sum(out[:0])
	return out
}

func (d *doorkeeper) recall(pair digest) (ok, known bool) {
	d.mu.Lock()
	defer d.mu.Unlock()
	at, ok := d.right[pair]
	if ok && d.now().Sub(at) < verified {
		return true, true
	}
	return false, d.refused[pair]
}

func (d *doorkeeper) remember(pair digest, ok bool) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if !ok {
		if len(d.refused) >= maxRefused {
			clear(d.refused)
		}
		d.refused[pair] = true
		return
	}
	if len(d.right) >= maxVerified {
		clear(d.right)
	}
	d.right[pair] = d.now()
}
