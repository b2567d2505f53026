package admin

import (
	"slices"
	"strings"
	"testing"

	"github.com/penstock/penstock/relay"
	"github.com/penstock/penstock/relay/account"
)

// signsIn reports whose a username is, if the password is right; 0 if not.
func (o *office) signsIn(username, password string) account.ID {
	o.t.Helper()
	l, err := o.db.Accounts.Login(o.t.Context(), username)
	if relay.KindOf(err) == relay.KindNotFound {
		return 0
	}
	must(o.t, err)
	ok, err := account.VerifyPassword(l.Password, account.HashToken(password))
	must(o.t, err)
	if !ok {
		return 0
	}
	return l.Account
}

func TestLoginsFollowTheInventory(t *testing.T) {
	o := newOffice(t)
	for _, step := range []struct {
		name, document, query string
		username, password    string
		want                  account.ID
	}{
		{"a login", "accounts: [{name: acme, soap: {username: u, password: p}}, {name: globex, soap: {username: v, password: q}}]", "", "u", "p", 1},
		{"a wrong password", "accounts: [{name: acme}]", "", "u", "q", 0},
		{"one that is omitted stays", "accounts: [{name: acme}]", "", "u", "p", 1},
		{"another password", "accounts: [{name: acme, soap: {username: u, password: p2}}]", "", "u", "p2", 1},
		{"the password before", "accounts: [{name: acme}]", "", "u", "p", 0},
		{"two that change places", "accounts: [{name: acme, soap: {username: v, password: p}}, {name: globex, soap: {username: u, password: q}}]", "", "u", "q", 2},
		{"and the other", "accounts: [{name: acme}]", "", "v", "p", 1},
		{"another username", "accounts: [{name: acme, soap: {username: w, password: p}}]", "", "w", "p", 1},
		{"the username before", "accounts: [{name: acme}]", "", "v", "p", 0},
		{"a password that is sealed", "accounts: [{name: acme, soap: {username: w, password: 'sha256:" + account.HashToken("p3") + "'}}]", "", "w", "p3", 1},
		{"what a prune leaves", "accounts: [{name: acme, soap: {username: w, password: p3}}]", "?prune=true", "w", "p3", 1},
		{"an account that is pruned", "accounts: [{name: acme, soap: {username: w, password: p3}}]", "?prune=true", "u", "q", 0},
		{"a username that is free again", "accounts: [{name: acme, soap: {username: u, password: p}}]", "", "u", "p", 1},
		{"a login that is pruned", "accounts: [{name: acme}]", "?prune=true", "u", "p", 0},
	} {
		o.applied(step.document, step.query)
		if got := o.signsIn(step.username, step.password); got != step.want {
			t.Errorf("%s: account %d, want %d", step.name, got, step.want)
		}
	}
}

func TestAUsernameOfAnotherAccountIsRefused(t *testing.T) {
	o := newOffice(t)
	o.applied("accounts: [{name: acme, soap: {username: u, password: p}}]", "")
	for _, document := range []string{
		"accounts: [{name: globex, soap: {username: u, password: q}}]",
		"accounts: [{name: acme}, {name: globex, soap: {username: u, password: q}}]",
	} {
		if got := o.apply(document, ""); !strings.HasPrefix(got, "422 ") || !strings.Contains(got, ".soap.username") {
			t.Errorf("%s: %s", document, got)
		}
	}
}

// A password that stays is kept as it was, so that whoever was verified stays so;
// and neither the inventory nor what is kept shows it.
func TestAPasswordIsKeptStretched(t *testing.T) {
	o := newOffice(t)
	const document = "accounts: [{name: acme, soap: {username: u, password: p-4711}}]"
	var kept []string
	shown := document
	for range 3 { // the second time with its mask
		o.applied(shown, "")
		l, err := o.db.Accounts.Login(t.Context(), "u")
		raw, err2 := o.db.Accounts.Inventory(t.Context())
		must(t, err, err2)
		kept = append(kept, l.Password)
		if !account.IsPasswordHash(l.Password) || !strings.Contains(string(raw), l.Password) || strings.Contains(string(raw), account.HashToken("p-4711")) {
			t.Errorf("kept as %s in %s", l.Password, raw)
		}
		if shown = strings.TrimPrefix(o.ask("GET /admin/inventory", ""), "200 "); strings.Contains(shown, "argon2id") || strings.Contains(shown, "4711") {
			t.Errorf("shown: %s", shown)
		}
	}
	o.applied(document, "")
	l, err := o.db.Accounts.Login(t.Context(), "u")
	must(t, err)
	if kept = append(kept, l.Password); len(slices.Compact(kept)) != 1 {
		t.Errorf("kept in turn as %q", kept)
	}
}
