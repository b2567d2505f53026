package inventory

import (
	"slices"
	"strings"
	"testing"

	document "github.com/penstock/penstock/config/inventory"
	"github.com/penstock/penstock/relay"
	"github.com/penstock/penstock/relay/account"
	"github.com/penstock/penstock/relay/relaytest"
)

// signsIn returns the account of a login; 0 if the password is wrong.
func (f *fixture) signsIn(username, password string) relay.AccountID {
	f.t.Helper()
	l, err := f.db.Accounts.Login(f.t.Context(), username)
	if relay.KindOf(err) == relay.KindNotFound {
		return 0
	}
	relaytest.NoError(f.t, err)
	ok, err := account.VerifyPassword(l.Password, account.HashToken(password))
	relaytest.NoError(f.t, err)
	if !ok {
		return 0
	}
	return l.Account
}

func TestLoginsFollowTheInventory(t *testing.T) {
	f := newFixture(t)
	for _, step := range []struct {
		name, body         string
		mode               document.Mode
		username, password string
		want               relay.AccountID
	}{
		{"a login", "accounts: [{name: acme, soap: {username: u, password: p}}, {name: globex, soap: {username: v, password: q}}]", document.Mode{}, "u", "p", 1},
		{"a wrong password", "accounts: [{name: acme}]", document.Mode{}, "u", "q", 0},
		{"one that is omitted stays", "accounts: [{name: acme}]", document.Mode{}, "u", "p", 1},
		{"another password", "accounts: [{name: acme, soap: {username: u, password: p2}}]", document.Mode{}, "u", "p2", 1},
		{"the password before", "accounts: [{name: acme}]", document.Mode{}, "u", "p", 0},
		{"two that change places", "accounts: [{name: acme, soap: {username: v, password: p}}, {name: globex, soap: {username: u, password: q}}]", document.Mode{}, "u", "q", 2},
		{"and the other", "accounts: [{name: acme}]", document.Mode{}, "v", "p", 1},
		{"another username", "accounts: [{name: acme, soap: {username: w, password: p}}]", document.Mode{}, "w", "p", 1},
		{"the username before", "accounts: [{name: acme}]", document.Mode{}, "v", "p", 0},
		{"a password that is sealed", "accounts: [{name: acme, soap: {username: w, password: 'sha256:" + account.HashToken("p3") + "'}}]", document.Mode{}, "w", "p3", 1},
		{"what a prune leaves", "accounts: [{name: acme, soap: {username: w, password: p3}}]", document.Mode{Prune: true, AllowRemovals: 100}, "w", "p3", 1},
		{"an account that is pruned", "accounts: [{name: acme, soap: {username: w, password: p3}}]", document.Mode{Prune: true, AllowRemovals: 100}, "u", "q", 0},
		{"a username that is free again", "accounts: [{name: acme, soap: {username: u, password: p}}]", document.Mode{}, "u", "p", 1},
		{"a login that is pruned", "accounts: [{name: acme}]", document.Mode{Prune: true, AllowRemovals: 100}, "u", "p", 0},
	} {
		f.applied(step.body, step.mode)
		relaytest.Equal(t, step.name+": the account", f.signsIn(step.username, step.password), step.want)
	}
}

func TestAUsernameOfAnotherAccountIsRefused(t *testing.T) {
	f := newFixture(t)
	f.applied("accounts: [{name: acme, soap: {username: u, password: p}}]", document.Mode{})
	for _, body := range []string{
		"accounts: [{name: globex, soap: {username: u, password: q}}]",
		"accounts: [{name: acme}, {name: globex, soap: {username: u, password: q}}]",
	} {
		if mistakes := f.refused(t, body, document.Mode{}); !strings.Contains(mistakes.Error(), ".soap.username") {
			t.Errorf("%s: %v, want a mistake at the username", body, mistakes)
		}
	}
}

// The stored form of an unchanged password stays, so that verified logins stay valid. Neither the
// masked document nor the database has the password.
func TestAPasswordIsKeptStretched(t *testing.T) {
	f := newFixture(t)
	const body = "accounts: [{name: acme, soap: {username: u, password: p-4711}}]"
	var kept []string
	shown := body
	for range 3 { // the second time with its mask
		f.applied(shown, document.Mode{})
		l, err := f.db.Accounts.Login(t.Context(), "u")
		raw, err2 := f.Store.Merged(t.Context())
		relaytest.NoError(t, err, err2)
		kept = append(kept, l.Password)
		if !account.IsPasswordHash(l.Password) || !strings.Contains(string(raw), l.Password) || strings.Contains(string(raw), account.HashToken("p-4711")) {
			t.Errorf("kept as %s in %s", l.Password, raw)
		}
		if shown = f.shown(); strings.Contains(shown, "argon2id") || strings.Contains(shown, "4711") {
			t.Errorf("shown: %s", shown)
		}
	}
	f.applied(body, document.Mode{})
	l, err := f.db.Accounts.Login(t.Context(), "u")
	relaytest.NoError(t, err)
	if kept = append(kept, l.Password); len(slices.Compact(kept)) != 1 {
		t.Errorf("kept in turn as %q", kept)
	}
}

// The revocation of a token also revokes the SOAP password with the same text.
func TestARevokedTokenEndsTheLoginThatHasIt(t *testing.T) {
	f := newFixture(t)
	f.applied(`accounts:
  - {name: acme, soap: {username: u, password: acme-token-0123456}, tokens: [{token: acme-token-0123456}, {token: other-token-012345}]}
  - {name: globex, soap: {username: v, password: other-token-012345}}`, document.Mode{})
	for _, tc := range []struct {
		token string
		want  relay.AccountID // the account that u signs in to afterwards
	}{{"other-token-012345", 1}, {"acme-token-0123456", 0}} {
		all, err := f.Tokens(t.Context(), 0)
		relaytest.NoError(t, err)
		at := slices.IndexFunc(all, func(t account.DeclaredToken) bool { return t.Hash == account.HashToken(tc.token) })
		_, err = f.RevokeToken(t.Context(), all[at].ID())
		relaytest.NoError(t, err)
		relaytest.Equal(t, "the accounts that sign in without "+tc.token,
			[]relay.AccountID{f.signsIn("u", "acme-token-0123456"), f.signsIn("v", "other-token-012345")}, []relay.AccountID{tc.want, 2})
	}
	if shown := f.shown(); strings.Contains(shown, `"username":"u"`) || !strings.Contains(shown, `"username":"v"`) {
		t.Errorf("declared: %s", shown)
	}
}
