package user_test

import (
	"strings"
	"testing"
	"time"

	"github.com/penstock/penstock/relay"
	"github.com/penstock/penstock/relay/db"
	"github.com/penstock/penstock/relay/db/dbtest"
	"github.com/penstock/penstock/relay/relaytest"
	"github.com/penstock/penstock/relay/user"
)

const password = "correct horse battery"

// rig is the service over a real store, with a clock.
type rig struct {
	*user.Service
	t   *testing.T
	now time.Time
}

func newRig(t *testing.T) *rig {
	r := &rig{t: t, now: dbtest.At(0)}
	r.Service = user.New(user.NewStore(dbtest.Open(t, db.Options{})), user.Options{SessionTime: time.Hour, Now: func() time.Time { return r.now }})
	return r
}

func (r *rig) add(name string, role user.Role, acct relay.AccountID) user.User {
	r.t.Helper()
	u, err := r.Add(r.t.Context(), user.Addition{Name: name, Role: role, Account: acct, Password: password})
	if err != nil {
		r.t.Fatal(err)
	}
	return u
}

func (r *rig) signIn(name string) user.SignedIn {
	r.t.Helper()
	in, err := r.SignIn(r.t.Context(), name, password)
	if err != nil {
		r.t.Fatal(err)
	}
	return in
}

func wantKind(t *testing.T, what string, err error, kind relay.Kind) {
	t.Helper()
	if err == nil || relay.KindOf(err) != kind {
		t.Errorf("%s: want %s, got %v", what, kind, err)
	}
}

func TestFieldsOfUsers(t *testing.T) {
	r := newRig(t)
	for _, tc := range []struct {
		name  string
		give  user.Addition
		field string // that is wrong; empty: none
	}{
		{"a viewer", user.Addition{Name: "anna", Role: user.Viewer, Password: password}, ""},
		{"a name is in lower case", user.Addition{Name: " Bob@Example.COM ", Role: user.Admin, Password: password}, ""},
		{"one of an account", user.Addition{Name: "carl", Role: user.Account, Account: 7, Password: password}, ""},
		{"no name", user.Addition{Role: user.Viewer, Password: password}, "name"},
		{"the name of the admin token", user.Addition{Name: "admin token", Role: user.Viewer, Password: password}, "name"},
		{"a long name", user.Addition{Name: strings.Repeat("a", 101), Role: user.Viewer, Password: password}, "name"},
		{"an unknown role", user.Addition{Name: "d", Role: "root", Password: password}, "role"},
		{"a role account without one", user.Addition{Name: "d", Role: user.Account, Password: password}, "account"},
		{"a viewer with an account", user.Addition{Name: "d", Role: user.Viewer, Account: 7, Password: password}, "account"},
		{"a short password", user.Addition{Name: "d", Role: user.Viewer, Password: "short"}, "password"},
		{"a password of blanks", user.Addition{Name: "d", Role: user.Viewer, Password: strings.Repeat(" ", 12)}, "password"},
		{"a short password with blanks around it", user.Addition{Name: "d", Role: user.Viewer, Password: "\t\u00a0 short     "}, "password"},
		{"a password without end", user.Addition{Name: "d", Role: user.Viewer, Password: strings.Repeat("x", 1025)}, "password"},
	} {
		u, err := r.Add(t.Context(), tc.give)
		if tc.field != "" {
			wantKind(t, tc.name, err, relay.KindInvalid)
			if relay.FieldsOf(err)[tc.field] == nil {
				t.Errorf("%s: %v", tc.name, relay.FieldsOf(err))
			}
			continue
		}
		relaytest.NoError(t, err)
		relaytest.Equal(t, tc.name+": the name", u.Name, strings.ToLower(strings.TrimSpace(tc.give.Name)))
		if strings.Contains(u.Password, password) {
			t.Errorf("%s: the password is not hashed", tc.name)
		}
	}
	_, err := r.Add(t.Context(), user.Addition{Name: "ANNA", Role: user.Viewer, Password: password})
	wantKind(t, "a name that is taken", err, relay.KindConflict)
}

func TestSignInIsRefusedWithOneAnswer(t *testing.T) {
	r := newRig(t)
	r.add("anna", user.Viewer, 0)
	r.add("gone", user.Viewer, 0)
	if _, _, err := r.Change(t.Context(), "gone", user.Change{Disabled: new(true)}); err != nil {
		t.Fatal(err)
	}
	if _, err := r.SignInAs(t.Context(), user.Identity{Subject: "s 1", Name: "eve", Role: user.Viewer}, 0); err != nil {
		t.Fatal(err)
	}
	texts := map[string]bool{}
	for what, try := range map[string][2]string{
		"a wrong password": {"anna", "something else 1"}, "an unknown user": {"nobody", password}, "no name": {"", password}, "a disabled user": {"gone", password},
		"a user of a provider": {"eve", ""}, "a long password": {"anna", strings.Repeat("x", 5000)},
	} {
		_, err := r.SignIn(t.Context(), try[0], try[1])
		wantKind(t, what, err, relay.KindUnauthenticated)
		texts[err.Error()] = true
	}
	if len(texts) != 1 {
		t.Errorf("the answers tell the cases apart: %v", texts)
	}
}

func TestSessionsEnd(t *testing.T) {
	for name, end := range map[string]func(*rig, user.SignedIn) error{
		"when they are signed out": func(r *rig, in user.SignedIn) error { return r.SignOut(t.Context(), in.Token) },
		"at their time":            func(r *rig, _ user.SignedIn) error { r.now = r.now.Add(time.Hour); return nil },
		"when the role changes": func(r *rig, _ user.SignedIn) error {
			_, _, err := r.Change(t.Context(), "anna", user.Change{Role: new(user.Viewer)})
			return err
		},
		"when the password changes": func(r *rig, _ user.SignedIn) error {
			_, _, err := r.Change(t.Context(), "anna", user.Change{Password: new("another password")})
			return err
		},
		"when the user changes the password": func(r *rig, _ user.SignedIn) error {
			return r.SetOwnPassword(t.Context(), "anna", password, "another password")
		},
		"when the user is disabled": func(r *rig, _ user.SignedIn) error {
			_, _, err := r.Change(t.Context(), "anna", user.Change{Disabled: new(true)})
			return err
		},
		"when the user is removed": func(r *rig, _ user.SignedIn) error { _, err := r.Remove(t.Context(), "anna"); return err },
	} {
		t.Run(name, func(t *testing.T) {
			r := newRig(t)
			r.add("anna", user.Admin, 0)
			in := r.signIn("Anna")
			got, err := r.Session(t.Context(), in.Token)
			relaytest.NoError(t, err)
			relaytest.Equal(t, "name and CSRF token of the session", []string{got.User.Name, got.CSRF()}, []string{"anna", in.CSRF()})
			relaytest.Equal(t, "the end of the session", got.ExpiresAt, r.now.Add(time.Hour))
			relaytest.NoError(t, end(r, in))
			_, err = r.Session(t.Context(), in.Token)
			wantKind(t, "after it", err, relay.KindUnauthenticated)
		})
	}
}

func TestOwnPassword(t *testing.T) {
	r := newRig(t)
	r.add("anna", user.Viewer, 0)
	for field, give := range map[string][2]string{"password": {"not this one 123", "another password"}, "new_password": {password, "short"}} {
		err := r.SetOwnPassword(t.Context(), "anna", give[0], give[1])
		if relay.FieldsOf(err)[field] == nil {
			t.Errorf("%s: %v", field, err)
		}
	}
	r.signIn("anna") // as before
}

func TestUsersOfAProvider(t *testing.T) {
	r := newRig(t)
	r.add("local", user.Viewer, 0)
	who := user.Identity{Subject: "https://idp 1", Name: "Eve@example.com", Role: user.Operator}
	first, err := r.SignInAs(t.Context(), who, 0)
	relaytest.NoError(t, err)
	relaytest.Equal(t, "name and role", []any{first.User.Name, first.User.Role}, []any{"eve@example.com", user.Operator})
	again, err := r.SignInAs(t.Context(), who, 0)
	relaytest.NoError(t, err)
	relaytest.Equal(t, "the user of the second sign-in", again.User.ID, first.User.ID)
	if _, err := r.Session(t.Context(), first.Token); err != nil {
		t.Errorf("a second sign-in ended the first session: %v", err)
	}
	who.Role, who.Name = user.Account, "eve@example.org"
	again, err = r.SignInAs(t.Context(), who, 7)
	relaytest.NoError(t, err)
	relaytest.Equal(t, "id and name with another role", []string{again.User.ID, again.User.Name}, []string{first.User.ID, "eve@example.org"})
	relaytest.Equal(t, "the account with another role", again.User.Account, 7)
	_, err = r.Session(t.Context(), first.Token)
	wantKind(t, "a session with the role of before", err, relay.KindUnauthenticated)

	for _, refused := range []user.Identity{{Subject: "https://idp 2", Name: "local", Role: user.Admin}, {Subject: "https://idp 1", Name: "local", Role: user.Admin}, {Subject: "https://idp 3", Role: user.Admin}} {
		_, err := r.SignInAs(t.Context(), refused, 0)
		wantKind(t, "a name that is taken, or none", err, relay.KindForbidden)
	}
	for field, c := range map[string]user.Change{"role": {Role: new(user.Admin)}, "password": {Password: new("another password")}, "account": {Account: new(relay.AccountID(8))}} {
		_, _, err := r.Change(t.Context(), "eve@example.org", c)
		if relay.FieldsOf(err)[field] == nil {
			t.Errorf("%s of a provider's user: %v", field, err)
		}
	}
	if _, _, err := r.Change(t.Context(), "eve@example.org", user.Change{Disabled: new(true)}); err != nil {
		t.Error(err)
	}
	_, err = r.SignInAs(t.Context(), who, 7)
	wantKind(t, "a disabled user", err, relay.KindForbidden)
}

func TestAChangeOfRoleRemovesTheAccount(t *testing.T) {
	r := newRig(t)
	r.add("carl", user.Account, 7)
	was, is, err := r.Change(t.Context(), "carl", user.Change{Role: new(user.Viewer)})
	relaytest.NoError(t, err)
	relaytest.Equal(t, "the account before", was.Account, 7)
	relaytest.Equal(t, "the account after", is.Account, 0)
	_, _, err = r.Change(t.Context(), "carl", user.Change{Role: new(user.Account)})
	wantKind(t, "the role account without one", err, relay.KindInvalid)
	_, _, err = r.Change(t.Context(), "nobody", user.Change{})
	wantKind(t, "nobody", err, relay.KindNotFound)
}

// FuzzParseName: a name that is taken is taken again as it is, and has no blanks.
func FuzzParseName(f *testing.F) {
	for _, seed := range []string{"", "ada", " Ada@Example.com ", "admin token", "a\x00b", "\u0130", "\u212a"} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, text string) {
		name, ok := user.ParseName(text)
		if !ok {
			return
		}
		if again, ok := user.ParseName(name); !ok || again != name {
			t.Errorf("%q is %q, which is %q, %v", text, name, again, ok)
		}
		for _, c := range name {
			if c <= ' ' || c > '~' {
				t.Errorf("the name %q has %q", name, c)
			}
		}
	})
}
