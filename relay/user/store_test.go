package user

import (
	"errors"
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/penstock/penstock/relay"
	"github.com/penstock/penstock/relay/db/dbtest"
	"github.com/penstock/penstock/relay/relaytest"
)

func TestStore(t *testing.T) {
	dbtest.Each(t, NewStore, map[string]func(*testing.T, *Store){
		"a user is loaded as saved":                          userIsLoaded,
		"names and subjects are unique":                      namesAndSubjectsAreUnique,
		"a change ends the sessions of the user":             changeEndsSessions,
		"a session does not start if the user has changed":   staleSession,
		"a session ends at its expiry or when it is deleted": sessionsEnd,
		"a removed user has no sessions":                     removedUser,
	})
}

func wantKind(t *testing.T, err error, kind relay.Kind) {
	t.Helper()
	if err == nil || relay.KindOf(err) != kind {
		t.Errorf("got error %v, want kind %s", err, kind)
	}
}

func anna() User {
	return User{
		ID: "u1", Name: "anna", Role: Account, Account: 7, Provider: OIDC, Subject: "https://idp.example 42",
		CreatedAt: dbtest.TimeAt(0), ChangedAt: dbtest.TimeAt(1), Version: 1,
	}
}

func session(u User, hash string) Session {
	return Session{Hash: hash, UserID: u.ID, Version: u.Version, CreatedAt: dbtest.TimeAt(2), ExpiresAt: dbtest.TimeAt(100)}
}

// sessionIsValid reports whether a session exists and has not expired.
func sessionIsValid(t *testing.T, s *Store, hash string) bool {
	t.Helper()
	_, _, err := s.Session(t.Context(), hash, dbtest.TimeAt(50))
	if err != nil && relay.KindOf(err) != relay.KindNotFound {
		t.Fatal(err)
	}
	return err == nil
}

func userIsLoaded(t *testing.T, s *Store) {
	want := anna()
	relaytest.NoError(t, s.CreateUser(t.Context(), want))
	got, err := s.User(t.Context(), "anna")
	relaytest.NoError(t, err)
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
	relaytest.NoError(t, s.CreateSession(t.Context(), session(want, "h")))
	want.SignedInAt = dbtest.TimeAt(2)
	sessionUser, expiresAt, err := s.Session(t.Context(), "h", dbtest.TimeAt(3))
	relaytest.NoError(t, err)
	relaytest.Equal(t, "the expiry of the session", expiresAt, dbtest.TimeAt(100))
	if diff := cmp.Diff(want, sessionUser); diff != "" {
		t.Error(diff)
	}
	got, err = s.UserBySubject(t.Context(), want.Subject)
	relaytest.NoError(t, err)
	relaytest.Equal(t, "the user by subject", got, want)
	_, err = s.UserBySubject(t.Context(), "")
	wantKind(t, err, relay.KindNotFound)
	users, err := s.Users(t.Context())
	relaytest.NoError(t, err)
	if len(users) != 1 {
		t.Fatalf("got %d users, want 1", len(users))
	}
	relaytest.Equal(t, "the listed user", users[0], want)
}

func namesAndSubjectsAreUnique(t *testing.T, s *Store) {
	a := anna()
	relaytest.NoError(t, s.CreateUser(t.Context(), a))
	ben := User{ID: "u2", Name: "anna", Version: 1}
	wantKind(t, s.CreateUser(t.Context(), ben), relay.KindConflict)
	ben.Name, ben.Subject = "other", a.Subject
	wantKind(t, s.CreateUser(t.Context(), ben), relay.KindConflict)
	ben.Subject = ""
	relaytest.NoError(t, s.CreateUser(t.Context(), ben), s.CreateUser(t.Context(), User{ID: "u3", Name: "third", Version: 1}))
	_, _, err := s.ChangeUser(t.Context(), "other", func(u *User) error { u.Name = "anna"; return nil })
	wantKind(t, err, relay.KindConflict)
}

func changeEndsSessions(t *testing.T, s *Store) {
	u := anna()
	relaytest.NoError(t, s.CreateUser(t.Context(), u), s.CreateSession(t.Context(), session(u, "h")))
	_, _, err := s.ChangeUser(t.Context(), "anna", func(*User) error { return nil })
	relaytest.NoError(t, err)
	if !sessionIsValid(t, s, "h") {
		t.Error("the session ended although nothing changed")
	}
	errRefused := errors.New("refused")
	if _, _, err := s.ChangeUser(t.Context(), "anna", func(u *User) error { u.Role = Admin; return errRefused }); !errors.Is(err, errRefused) || !sessionIsValid(t, s, "h") {
		t.Errorf("refused change: error %v, want %v and a valid session", err, errRefused)
	}
	oldUser, newUser, err := s.ChangeUser(t.Context(), "anna", func(u *User) error { u.Disabled = true; return nil })
	relaytest.NoError(t, err)
	relaytest.Equal(t, "whether the old user is disabled", oldUser.Disabled, false)
	relaytest.Equal(t, "whether the new user is disabled", newUser.Disabled, true)
	relaytest.Equal(t, "the version of the new user", newUser.Version, 2)
	if sessionIsValid(t, s, "h") {
		t.Error("the session is valid after the change")
	}
	_, _, err = s.ChangeUser(t.Context(), "unknown", func(*User) error { return nil })
	wantKind(t, err, relay.KindNotFound)
}

func staleSession(t *testing.T, s *Store) {
	u := anna()
	relaytest.NoError(t, s.CreateUser(t.Context(), u))
	_, _, err := s.ChangeUser(t.Context(), "anna", func(u *User) error { u.Disabled = true; return nil })
	relaytest.NoError(t, err)
	wantKind(t, s.CreateSession(t.Context(), session(u, "h")), relay.KindNotFound)
	if sessionIsValid(t, s, "h") {
		t.Error("the session started")
	}
}

func sessionsEnd(t *testing.T, s *Store) {
	u := anna()
	relaytest.NoError(t, s.CreateUser(t.Context(), u), s.CreateSession(t.Context(), session(u, "a")), s.CreateSession(t.Context(), session(u, "b")))
	_, _, err := s.Session(t.Context(), "a", dbtest.TimeAt(100))
	wantKind(t, err, relay.KindNotFound)
	relaytest.NoError(t, s.DeleteSession(t.Context(), "a"), s.DeleteSession(t.Context(), "none"))
	if sessionIsValid(t, s, "a") || !sessionIsValid(t, s, "b") {
		t.Error("DeleteSession deleted another session than a")
	}
	relaytest.NoError(t, s.Sweep(t.Context(), dbtest.TimeAt(99)))
	if !sessionIsValid(t, s, "b") {
		t.Error("Sweep deleted a valid session")
	}
	relaytest.NoError(t, s.Sweep(t.Context(), dbtest.TimeAt(100)))
	if _, _, err := s.Session(t.Context(), "b", time.Time{}); relay.KindOf(err) != relay.KindNotFound {
		t.Errorf("the expired session after Sweep: error %v, want kind not found", err)
	}
}

func removedUser(t *testing.T, s *Store) {
	u := anna()
	relaytest.NoError(t, s.CreateUser(t.Context(), u), s.CreateSession(t.Context(), session(u, "h")))
	got, err := s.RemoveUser(t.Context(), "anna")
	if err != nil || got.ID != "u1" || sessionIsValid(t, s, "h") {
		t.Errorf("RemoveUser: user %+v, error %v; want u1 and no session", got, err)
	}
	_, err = s.RemoveUser(t.Context(), "anna")
	wantKind(t, err, relay.KindNotFound)
}
