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
)

// lobby is an authenticator whose hashing is counted.
type lobby struct {
	*authenticator
	logins *loginStore
	at     time.Time
	hashed atomic.Int32
}

func newLobby() *lobby {
	l := &lobby{logins: newLoginStore(), at: clock()}
	l.authenticator = newAuthenticator(l.logins, func() time.Time { return l.at })
	l.check = func(hash, sum string) (bool, error) { l.hashed.Add(1); return hash == sum, nil }
	return l
}

// tries signs in and says what came of it.
func (l *lobby) tries(username, password string) string {
	acct, err := l.authenticate(context.Background(), username, password)
	if err != nil {
		return relay.KindOf(err).String()
	}
	return acct.String()
}

func TestSigningIn(t *testing.T) {
	l := newLobby()
	for _, step := range []struct {
		name, username, password string
		change                   func()
		want                     string
		hashed                   int32 // altogether
	}{
		{"the first time", "acme", "secret", nil, "1", 1},
		{"again", "acme", "secret", nil, "1", 1},
		{"a wrong password", "acme", "wrong", nil, "unauthenticated", 2},
		{"the same wrong one", "acme", "wrong", nil, "unauthenticated", 2},
		{"somebody else", "globex", "öther", nil, "2", 3},
		{"somebody else with the first one's", "globex", "secret", nil, "unauthenticated", 4},
		{"nobody", "nobody", "secret", nil, "unauthenticated", 5},
		{"nobody again", "nobody", "secret", nil, "unauthenticated", 5},
		{"nine minutes later", "acme", "secret", func() { l.at = l.at.Add(9 * time.Minute) }, "1", 5},
		{"ten minutes after it was verified", "acme", "secret", func() { l.at = l.at.Add(time.Minute) }, "1", 6},
		{"another password is set", "acme", "secret", func() {
			l.logins.logins["acme"] = account.Login{Username: "acme", Account: 1, Password: account.HashToken("wrong")}
		}, "unauthenticated", 7},
		{"the one that was wrong", "acme", "wrong", nil, "1", 8},
		{"the username is another account's", "acme", "wrong", func() {
			l.logins.logins["acme"] = account.Login{Username: "acme", Account: 3, Password: account.HashToken("wrong")}
		}, "3", 8},
		{"the login is gone", "acme", "wrong", func() { delete(l.logins.logins, "acme") }, "unauthenticated", 9},
		{"the store is down", "globex", "öther", func() { l.logins.err = relay.Errorf(relay.KindUnavailable, "down") }, "unavailable", 9},
	} {
		if step.change != nil {
			step.change()
		}
		if got := l.tries(step.username, step.password); got != step.want || l.hashed.Load() != step.hashed {
			t.Errorf("%s: %s, hashed %d times, want %s and %d", step.name, got, l.hashed.Load(), step.want, step.hashed)
		}
	}
}

// A flood of guesses is hashed one at a time; who was verified is not delayed,
// who was not waits for a turn, and not for ever.
func TestAFloodOfWrongPasswords(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		l := newLobby()
		var busy, most atomic.Int32
		l.check = func(hash, sum string) (bool, error) {
			most.Store(max(most.Load(), busy.Add(1)))
			time.Sleep(time.Second) // of the bubble's clock
			busy.Add(-1)
			return hash == sum, nil
		}
		if got := l.tries("acme", "secret"); got != "1" {
			t.Fatal(got)
		}
		results := make([]string, 100)
		var wg sync.WaitGroup
		for i := range results {
			wg.Go(func() { results[i] = l.tries("acme", fmt.Sprint("guess ", i)) })
		}
		synctest.Wait()
		began := time.Now()
		if got := l.tries("acme", "secret"); got != "1" || time.Since(began) > 0 {
			t.Errorf("who was verified: %s after %s", got, time.Since(began))
		}
		wg.Wait()
		count := make(map[string]int)
		for _, r := range results {
			count[r]++
		}
		if took := time.Since(began); most.Load() != 1 || took > 7*time.Second || count["unauthenticated"] < 4 || count["unavailable"] < 90 {
			t.Errorf("%d at a time, %s, %v", most.Load(), took, count)
		}
		if got := l.tries("globex", "öther"); got != "2" {
			t.Errorf("afterwards: %s", got)
		}
	})
}

func TestTheSamePairAtOnceIsHashedOnce(t *testing.T) {
	l := newLobby()
	var wg sync.WaitGroup
	for range 20 {
		wg.Go(func() {
			if got := l.tries("acme", "secret"); got != "1" {
				t.Error(got)
			}
		})
	}
	wg.Wait()
	if l.hashed.Load() != 1 {
		t.Errorf("hashed %d times", l.hashed.Load())
	}
}

func TestWhatIsRememberedIsBounded(t *testing.T) {
	l := newLobby()
	if got := l.tries("acme", "secret"); got != "1" {
		t.Fatal(got)
	}
	for i := range maxRejected + 5 {
		l.tries("acme", fmt.Sprint(i))
	}
	if len(l.rejected) > maxRejected || len(l.verified) != 1 {
		t.Errorf("%d refused, %d right", len(l.rejected), len(l.verified))
	}
	for i := range maxVerified + 5 {
		l.cache(l.digest(fmt.Sprint(i), "h", "s"), true)
	}
	if len(l.verified) > maxVerified {
		t.Errorf("%d right", len(l.verified))
	}
}
