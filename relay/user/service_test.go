package user_test

import (
	"fmt"
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

// rig is a Service with a real store and a clock.
type rig struct {
	*user.Service
	t   *testing.T
	now time.Time
}

func newRig(t *testing.T) *rig {
	r := &rig{t: t, now: dbtest.TimeAt(0)}
	r.Service = user.New(user.NewStore(dbtest.Open(t, db.Options{})), user.Options{SessionTime: time.Hour, Now: func() time.Time { return r.now }})
	return r
}

func (r *rig) add(name string, role user.Role, acct relay.AccountID) user.User {
	r.t.Helper()
	u, err := r.Add(r.t.Context(), user.NewUser{Name: name, Role: role, Account: acct, Password: password})
	if err != nil {
		r.t.Fatal(err)
	}
	return u
}

func (r *rig) signIn(name string) user.SignInResult {
	r.t.Helper()
	signedIn, err := r.SignIn(r.t.Context(), name, password)
	if err != nil {
		r.t.Fatal(err)
	}
	return signedIn
}

func wantKind(t *testing.T, label string, err error, kind relay.Kind) {
	t.Helper()
	if err == nil || relay.KindOf(err) != kind {
		t.Errorf("%s: got error %v, want kind %s", label, err, kind)
	}
}

func TestAddValidatesUsers(t *testing.T) {
	r := newRig(t)
	for _, tc := range []struct {
		name     string
		addition user.NewUser
		field    string // the invalid field, if any
	}{
		{"viewer", user.NewUser{Name: "anna", Role: user.Viewer, Password: password}, ""},
		{"name in upper case", user.NewUser{Name: " Bob@Example.COM ", Role: user.Admin, Password: password}, ""},
		{"user of an account", user.NewUser{Name: "carl", Role: user.Account, Account: 7, Password: password}, ""},
		{"missing name", user.NewUser{Role: user.Viewer, Password: password}, "name"},
		{"name of the admin token", user.NewUser{Name: "admin token", Role: user.Viewer, Password: password}, "name"},
		{"long name", user.NewUser{Name: strings.Repeat("a", 101), Role: user.Viewer, Password: password}, "name"},
		{"unknown role", user.NewUser{Name: "d", Role: "root", Password: password}, "role"},
		{"role account without an account", user.NewUser{Name: "d", Role: user.Account, Password: password}, "account"},
		{"viewer with an account", user.NewUser{Name: "d", Role: user.Viewer, Account: 7, Password: password}, "account"},
		{"short password", user.NewUser{Name: "d", Role: user.Viewer, Password: "short"}, "password"},
		{"password of blanks", user.NewUser{Name: "d", Role: user.Viewer, Password: strings.Repeat(" ", 12)}, "password"},
		{"short password between blanks", user.NewUser{Name: "d", Role: user.Viewer, Password: "\t\u00a0 short     "}, "password"},
		{"long password", user.NewUser{Name: "d", Role: user.Viewer, Password: strings.Repeat("x", 1025)}, "password"},
	} {
		u, err := r.Add(t.Context(), tc.addition)
		if tc.field != "" {
			wantKind(t, tc.name, err, relay.KindInvalid)
			if relay.FieldsOf(err)[tc.field] == nil {
				t.Errorf("%s: invalid fields %v, want %s", tc.name, relay.FieldsOf(err), tc.field)
			}
			continue
		}
		relaytest.NoError(t, err)
		relaytest.Equal(t, tc.name+": the name", u.Name, strings.ToLower(strings.TrimSpace(tc.addition.Name)))
		if strings.Contains(u.Password, password) {
			t.Errorf("%s: the password is not hashed", tc.name)
		}
	}
	_, err := r.Add(t.Context(), user.NewUser{Name: "ANNA", Role: user.Viewer, Password: password})
	wantKind(t, "existing name", err, relay.KindConflict)
}

func TestRefusedSignInsGetTheSameError(t *testing.T) {
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
	for name, credentials := range map[string][2]string{
		"wrong password": {"anna", "something else 1"}, "unknown user": {"unknown", password}, "missing name": {"", password}, "disabled user": {"gone", password},
		"user of a provider": {"eve", ""}, "long password": {"anna", strings.Repeat("x", 5000)},
	} {
		_, err := r.SignIn(t.Context(), credentials[0], credentials[1])
		wantKind(t, name, err, relay.KindUnauthenticated)
		texts[err.Error()] = true
	}
	if len(texts) != 1 {
		t.Errorf("got errors %v, want one text for all cases", texts)
	}
}

func TestSessionsEnd(t *testing.T) {
	for name, end := range map[string]func(*rig, user.SignInResult) error{
		"sign-out": func(r *rig, signedIn user.SignInResult) error { return r.SignOut(t.Context(), signedIn.Token) },
		"expiry":   func(r *rig, _ user.SignInResult) error { r.now = r.now.Add(time.Hour); return nil },
		"change of the role": func(r *rig, _ user.SignInResult) error {
			_, _, err := r.Change(t.Context(), "anna", user.Change{Role: new(user.Viewer)})
			return err
		},
		"change of the password": func(r *rig, _ user.SignInResult) error {
			_, _, err := r.Change(t.Context(), "anna", user.Change{Password: new("another password")})
			return err
		},
		"change of the own password": func(r *rig, _ user.SignInResult) error {
			return r.SetOwnPassword(t.Context(), "anna", password, "another password")
		},
		"disabled user": func(r *rig, _ user.SignInResult) error {
			_, _, err := r.Change(t.Context(), "anna", user.Change{Disabled: new(true)})
			return err
		},
		"removed user": func(r *rig, _ user.SignInResult) error { _, err := r.Remove(t.Context(), "anna"); return err },
	} {
		t.Run(name, func(t *testing.T) {
			r := newRig(t)
			r.add("anna", user.Admin, 0)
			signedIn := r.signIn("Anna")
			got, err := r.Session(t.Context(), signedIn.Token)
			relaytest.NoError(t, err)
			relaytest.Equal(t, "name and CSRF token of the session", []string{got.User.Name, got.CSRF()}, []string{"anna", signedIn.CSRF()})
			relaytest.Equal(t, "the expiry of the session", got.ExpiresAt, r.now.Add(time.Hour))
			relaytest.NoError(t, end(r, signedIn))
			_, err = r.Session(t.Context(), signedIn.Token)
			wantKind(t, "the ended session", err, relay.KindUnauthenticated)
		})
	}
}

func TestInvalidOwnPasswordsAreRefused(t *testing.T) {
	r := newRig(t)
	r.add("anna", user.Viewer, 0)
	for field, passwords := range map[string][2]string{"password": {"not this one 123", "another password"}, "new_password": {password, "short"}} {
		err := r.SetOwnPassword(t.Context(), "anna", passwords[0], passwords[1])
		if relay.FieldsOf(err)[field] == nil {
			t.Errorf("error %v, want one for the field %s", err, field)
		}
	}
	r.signIn("anna") // with the old password
}

func TestUsersOfAProvider(t *testing.T) {
	r := newRig(t)
	r.add("local", user.Viewer, 0)
	identity := user.Identity{Subject: "https://idp 1", Name: "Eve@example.com", Role: user.Operator}
	first, err := r.SignInAs(t.Context(), identity, 0)
	relaytest.NoError(t, err)
	relaytest.Equal(t, "name and role of the user", []any{first.User.Name, first.User.Role}, []any{"eve@example.com", user.Operator})
	repeated, err := r.SignInAs(t.Context(), identity, 0)
	relaytest.NoError(t, err)
	relaytest.Equal(t, "the user of the second sign-in", repeated.User.ID, first.User.ID)
	if _, err := r.Session(t.Context(), first.Token); err != nil {
		t.Errorf("a second sign-in ended the first session: %v", err)
	}
	identity.Role, identity.Name = user.Account, "eve@example.org"
	repeated, err = r.SignInAs(t.Context(), identity, 7)
	relaytest.NoError(t, err)
	relaytest.Equal(t, "id and name after a change of the role", []string{repeated.User.ID, repeated.User.Name}, []string{first.User.ID, "eve@example.org"})
	relaytest.Equal(t, "the account after a change of the role", repeated.User.Account, 7)
	_, err = r.Session(t.Context(), first.Token)
	wantKind(t, "a session with the previous role", err, relay.KindUnauthenticated)

	for _, refused := range []user.Identity{{Subject: "https://idp 2", Name: "local", Role: user.Admin}, {Subject: "https://idp 1", Name: "local", Role: user.Admin}, {Subject: "https://idp 3", Role: user.Admin}} {
		_, err := r.SignInAs(t.Context(), refused, 0)
		wantKind(t, fmt.Sprintf("identity %+v", refused), err, relay.KindForbidden)
	}
	for field, c := range map[string]user.Change{"role": {Role: new(user.Admin)}, "password": {Password: new("another password")}, "account": {Account: new(relay.AccountID(8))}} {
		_, _, err := r.Change(t.Context(), "eve@example.org", c)
		if relay.FieldsOf(err)[field] == nil {
			t.Errorf("change of a user of a provider: error %v, want one for the field %s", err, field)
		}
	}
	if _, _, err := r.Change(t.Context(), "eve@example.org", user.Change{Disabled: new(true)}); err != nil {
		t.Error(err)
	}
	_, err = r.SignInAs(t.Context(), identity, 7)
	wantKind(t, "sign-in of a disabled user", err, relay.KindForbidden)
}

func TestAChangeOfRoleRemovesTheAccount(t *testing.T) {
	r := newRig(t)
	r.add("carl", user.Account, 7)
	oldUser, newUser, err := r.Change(t.Context(), "carl", user.Change{Role: new(user.Viewer)})
	relaytest.NoError(t, err)
	relaytest.Equal(t, "the account before", oldUser.Account, 7)
	relaytest.Equal(t, "the account after", newUser.Account, 0)
	_, _, err = r.Change(t.Context(), "carl", user.Change{Role: new(user.Account)})
	wantKind(t, "role account without an account", err, relay.KindInvalid)
	_, _, err = r.Change(t.Context(), "unknown", user.Change{})
	wantKind(t, "unknown user", err, relay.KindNotFound)
}

// FuzzParseName checks that a parsed name parses to itself and has no blanks or control characters.
func FuzzParseName(f *testing.F) {
	for _, seed := range []string{"", "ada", " Ada@Example.com ", "admin token", "a\x00b", "\u0130", "\u212a"} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, text string) {
		name, ok := user.ParseName(text)
		if !ok {
			return
		}
		if reparsed, ok := user.ParseName(name); !ok || reparsed != name {
			t.Errorf("ParseName(%q) = %q, which parses as %q, %v", text, name, reparsed, ok)
		}
		for _, c := range name {
			if c <= ' ' || c > '~' {
				t.Errorf("the name %q contains %q", name, c)
			}
		}
	})
}
