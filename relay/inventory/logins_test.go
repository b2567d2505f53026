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

// accountOfLogin returns the account of a login, and 0 if the username or password is wrong.
func (f *fixture) accountOfLogin(username, password string) relay.AccountID {
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
		{"new login", "accounts: [{name: acme, soap: {username: u, password: p}}, {name: globex, soap: {username: v, password: q}}]", document.Mode{}, "u", "p", 1},
		{"wrong password", "accounts: [{name: acme}]", document.Mode{}, "u", "q", 0},
		{"omitted login stays", "accounts: [{name: acme}]", document.Mode{}, "u", "p", 1},
		{"changed password", "accounts: [{name: acme, soap: {username: u, password: p2}}]", document.Mode{}, "u", "p2", 1},
		{"previous password", "accounts: [{name: acme}]", document.Mode{}, "u", "p", 0},
		{"second account after usernames are swapped", "accounts: [{name: acme, soap: {username: v, password: p}}, {name: globex, soap: {username: u, password: q}}]", document.Mode{}, "u", "q", 2},
		{"first account after usernames are swapped", "accounts: [{name: acme}]", document.Mode{}, "v", "p", 1},
		{"changed username", "accounts: [{name: acme, soap: {username: w, password: p}}]", document.Mode{}, "w", "p", 1},
		{"previous username", "accounts: [{name: acme}]", document.Mode{}, "v", "p", 0},
		{"hashed password", "accounts: [{name: acme, soap: {username: w, password: 'sha256:" + account.HashToken("p3") + "'}}]", document.Mode{}, "w", "p3", 1},
		{"login declared in a prune", "accounts: [{name: acme, soap: {username: w, password: p3}}]", document.Mode{Prune: true, AllowRemovals: 100}, "w", "p3", 1},
		{"login of a pruned account", "accounts: [{name: acme, soap: {username: w, password: p3}}]", document.Mode{Prune: true, AllowRemovals: 100}, "u", "q", 0},
		{"username of a pruned login", "accounts: [{name: acme, soap: {username: u, password: p}}]", document.Mode{}, "u", "p", 1},
		{"pruned login", "accounts: [{name: acme}]", document.Mode{Prune: true, AllowRemovals: 100}, "u", "p", 0},
	} {
		f.apply(step.body, step.mode)
		relaytest.Equal(t, step.name+": the account", f.accountOfLogin(step.username, step.password), step.want)
	}
}

func TestAUsernameOfAnotherAccountIsRefused(t *testing.T) {
	f := newFixture(t)
	f.apply("accounts: [{name: acme, soap: {username: u, password: p}}]", document.Mode{})
	for _, body := range []string{
		"accounts: [{name: globex, soap: {username: u, password: q}}]",
		"accounts: [{name: acme}, {name: globex, soap: {username: u, password: q}}]",
	} {
		if mistakes := f.applyInvalid(t, body, document.Mode{}); !strings.Contains(mistakes.Error(), ".soap.username") {
			t.Errorf("%s: %v, want a mistake at the username", body, mistakes)
		}
	}
}

// An unchanged password keeps its hash, so that logins in the cache of verified passwords stay valid.
// Neither the masked document nor the database contains the password.
func TestThePasswordHashIsStable(t *testing.T) {
	f := newFixture(t)
	const body = "accounts: [{name: acme, soap: {username: u, password: p-4711}}]"
	var hashes []string
	masked := body
	for range 3 { // from the second time on with the masked password
		f.apply(masked, document.Mode{})
		l, err := f.db.Accounts.Login(t.Context(), "u")
		raw, err2 := f.Store.Merged(t.Context())
		relaytest.NoError(t, err, err2)
		hashes = append(hashes, l.Password)
		if !account.IsPasswordHash(l.Password) || !strings.Contains(string(raw), l.Password) || strings.Contains(string(raw), account.HashToken("p-4711")) {
			t.Errorf("stored password %s in %s, want an argon2id hash of the password only", l.Password, raw)
		}
		if masked = f.declaredJSON(); strings.Contains(masked, "argon2id") || strings.Contains(masked, "4711") {
			t.Errorf("the masked document contains the hash or the password: %s", masked)
		}
	}
	f.apply(body, document.Mode{})
	l, err := f.db.Accounts.Login(t.Context(), "u")
	relaytest.NoError(t, err)
	if hashes = append(hashes, l.Password); len(slices.Compact(hashes)) != 1 {
		t.Errorf("stored hashes = %q, want equal hashes", hashes)
	}
}

// The revocation of a token also revokes the SOAP password with the same text.
func TestARevokedTokenRevokesTheLoginWithTheSameText(t *testing.T) {
	f := newFixture(t)
	f.apply(`accounts:
  - {name: acme, soap: {username: u, password: acme-token-0123456}, tokens: [{token: acme-token-0123456}, {token: other-token-012345}]}
  - {name: globex, soap: {username: v, password: other-token-012345}}`, document.Mode{})
	for _, tc := range []struct {
		token string
		want  relay.AccountID // the account of the login u afterwards
	}{{"other-token-012345", 1}, {"acme-token-0123456", 0}} {
		tokens, err := f.Tokens(t.Context(), 0)
		relaytest.NoError(t, err)
		index := slices.IndexFunc(tokens, func(t account.DeclaredToken) bool { return t.Hash == account.HashToken(tc.token) })
		_, err = f.RevokeToken(t.Context(), tokens[index].ID())
		relaytest.NoError(t, err)
		relaytest.Equal(t, "the accounts of the logins after the revocation of "+tc.token,
			[]relay.AccountID{f.accountOfLogin("u", "acme-token-0123456"), f.accountOfLogin("v", "other-token-012345")}, []relay.AccountID{tc.want, 2})
	}
	if text := f.declaredJSON(); strings.Contains(text, `"username":"u"`) || !strings.Contains(text, `"username":"v"`) {
		t.Errorf("declared records %s, want the login v without u", text)
	}
}
