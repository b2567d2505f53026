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
		relaytest.Equal(t, step.name+": the answer", l.tries(step.username, step.password), step.want)
		relaytest.Equal(t, step.name+": the number of hashes", l.hashed.Load(), step.hashed)
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
		relaytest.Equal(t, "the answer for a verified login", l.tries("acme", "secret"), "1")
		relaytest.Equal(t, "the time that a verified login waits", time.Since(began), 0)
		wg.Wait()
		count := make(map[string]int)
		for _, r := range results {
			count[r]++
		}
		relaytest.Equal(t, "the hashes at a time", most.Load(), 1)
		if took := time.Since(began); took > 7*time.Second {
			t.Errorf("it took %s, want 7s at most", took)
		}
		if count["unauthenticated"] < 4 || count["unavailable"] < 90 {
			t.Errorf("the answers are %v, want at least 4 unauthenticated and 90 unavailable", count)
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

func TestTheCachesOfLoginsAreBounded(t *testing.T) {
	l := newLobby()
	if got := l.tries("acme", "secret"); got != "1" {
		t.Fatal(got)
	}
	for i := range maxRejected + 5 {
		l.tries("acme", fmt.Sprint(i))
	}
	if len(l.rejected) > maxRejected {
		t.Errorf("%d rejected logins are kept, want %d at most", len(l.rejected), maxRejected)
	}
	relaytest.Equal(t, "the number of verified logins", len(l.verified), 1)
	for i := range maxVerified + 5 {
		l.cache(l.digest(fmt.Sprint(i), "h", "s"), true)
	}
	if len(l.verified) > maxVerified {
		t.Errorf("%d right", len(l.verified))
	}
}
