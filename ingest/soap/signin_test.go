package soap

import (
	"context"
	"fmt"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/penstock/penstock/relay"
	"github.com/penstock/penstock/relay/account"
	"github.com/penstock/penstock/relay/relaytest"
)

// countingAuthenticator counts the hashes of an authenticator.
type countingAuthenticator struct {
	*authenticator
	logins *loginStore
	now    time.Time
	hashed atomic.Int32
}

func newCountingAuthenticator() *countingAuthenticator {
	a := &countingAuthenticator{logins: newLoginStore(), now: clock()}
	a.authenticator = newAuthenticator(a.logins, func() time.Time { return a.now })
	a.check = func(hash, sum string) (bool, error) { a.hashed.Add(1); return hash == sum, nil }
	return a
}

// result signs in and returns the account id or the kind of error.
func (a *countingAuthenticator) result(username, password string) string {
	acct, err := a.authenticate(context.Background(), username, password)
	if err != nil {
		return relay.KindOf(err).String()
	}
	return acct.String()
}

func TestSigningIn(t *testing.T) {
	a := newCountingAuthenticator()
	for _, step := range []struct {
		name, username, password string
		change                   func()
		want                     string
		hashes                   int32 // total so far
	}{
		{"the first time", "acme", "secret", nil, "1", 1},
		{"a repeated login", "acme", "secret", nil, "1", 1},
		{"a wrong password", "acme", "wrong", nil, "unauthenticated", 2},
		{"the same wrong password", "acme", "wrong", nil, "unauthenticated", 2},
		{"another login", "globex", "öther", nil, "2", 3},
		{"another login's password", "globex", "secret", nil, "unauthenticated", 4},
		{"an unknown username", "nobody", "secret", nil, "unauthenticated", 5},
		{"the same unknown username", "nobody", "secret", nil, "unauthenticated", 5},
		{"nine minutes later", "acme", "secret", func() { a.now = a.now.Add(9 * time.Minute) }, "1", 5},
		{"ten minutes after verification", "acme", "secret", func() { a.now = a.now.Add(time.Minute) }, "1", 6},
		{"a changed password", "acme", "secret", func() {
			a.logins.logins["acme"] = account.Login{Username: "acme", Account: 1, Password: account.HashToken("wrong")}
		}, "unauthenticated", 7},
		{"the new password", "acme", "wrong", nil, "1", 8},
		{"the username moved to another account", "acme", "wrong", func() {
			a.logins.logins["acme"] = account.Login{Username: "acme", Account: 3, Password: account.HashToken("wrong")}
		}, "3", 8},
		{"a deleted login", "acme", "wrong", func() { delete(a.logins.logins, "acme") }, "unauthenticated", 9},
		{"the store is down", "globex", "öther", func() { a.logins.err = relay.Errorf(relay.KindUnavailable, "down") }, "unavailable", 9},
	} {
		if step.change != nil {
			step.change()
		}
		relaytest.Equal(t, step.name+": the answer", a.result(step.username, step.password), step.want)
		relaytest.Equal(t, step.name+": the number of hashes", a.hashed.Load(), step.hashes)
	}
}

// Wrong passwords are hashed one at a time. A verified login is not delayed; any other login waits
// for its turn until a time limit.
func TestFloodOfWrongPasswords(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		a := newCountingAuthenticator()
		var hashing, maxHashing atomic.Int32
		a.check = func(hash, sum string) (bool, error) {
			maxHashing.Store(max(maxHashing.Load(), hashing.Add(1)))
			time.Sleep(time.Second) // of the synctest clock
			hashing.Add(-1)
			return hash == sum, nil
		}
		if got := a.result("acme", "secret"); got != "1" {
			t.Fatalf("the first login: got %s, want 1", got)
		}
		results := make([]string, 100)
		var wg sync.WaitGroup
		for i := range results {
			wg.Go(func() { results[i] = a.result("acme", fmt.Sprint("guess ", i)) })
		}
		synctest.Wait()
		began := time.Now()
		relaytest.Equal(t, "the answer for a verified login", a.result("acme", "secret"), "1")
		relaytest.Equal(t, "the time that a verified login waits", time.Since(began), 0)
		wg.Wait()
		count := make(map[string]int)
		for _, r := range results {
			count[r]++
		}
		relaytest.Equal(t, "the number of concurrent hashes", maxHashing.Load(), 1)
		if took := time.Since(began); took > 7*time.Second {
			t.Errorf("the guesses took %s, want at most 7s", took)
		}
		if count["unauthenticated"] < 4 || count["unavailable"] < 90 {
			t.Errorf("got %v, want at least 4 unauthenticated and 90 unavailable", count)
		}
		if got := a.result("globex", "öther"); got != "2" {
			t.Errorf("a login after the flood: got %s, want 2", got)
		}
	})
}

func TestConcurrentEqualLoginsAreHashedOnce(t *testing.T) {
	a := newCountingAuthenticator()
	var wg sync.WaitGroup
	for range 20 {
		wg.Go(func() {
			if got := a.result("acme", "secret"); got != "1" {
				t.Errorf("a login: got %s, want 1", got)
			}
		})
	}
	wg.Wait()
	if a.hashed.Load() != 1 {
		t.Errorf("%d hashes, want 1", a.hashed.Load())
	}
}

func TestLoginCachesAreBounded(t *testing.T) {
	a := newCountingAuthenticator()
	if got := a.result("acme", "secret"); got != "1" {
		t.Fatalf("the first login: got %s, want 1", got)
	}
	for i := range maxRejected + 5 {
		a.result("acme", fmt.Sprint(i))
	}
	if len(a.rejected) > maxRejected {
		t.Errorf("%d rejected logins, want at most %d", len(a.rejected), maxRejected)
	}
	relaytest.Equal(t, "the number of verified logins", len(a.verified), 1)
	for i := range maxVerified + 5 {
		a.store(a.digest(fmt.Sprint(i), "h", "s"), true)
	}
	if len(a.verified) > maxVerified {
		t.Errorf("%d verified logins, want at most %d", len(a.verified), maxVerified)
	}
}
