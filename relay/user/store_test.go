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
		"a user comes back as it was saved":                   comesBack,
		"a name and a subject are taken once":                 takenOnce,
		"a change ends the sessions, no change does not":      changeEndsSessions,
		"a session does not begin for a user who was changed": staleSession,
		"a session ends at its time, or when it is deleted":   sessionsEnd,
		"a removed user has no sessions":                      removedUser,
	})
}

func wantKind(t *testing.T, err error, kind relay.Kind) {
	t.Helper()
	if err == nil || relay.KindOf(err) != kind {
		t.Errorf("want %s, got %v", kind, err)
	}
}

func anna() User {
	return User{
		ID: "u1", Name: "anna", Role: Account, Account: 7, Provider: OIDC, Subject: "https://idp.example 42",
		CreatedAt: dbtest.At(0), ChangedAt: dbtest.At(1), Version: 1,
	}
}

func session(u User, hash string) Session {
	return Session{Hash: hash, UserID: u.ID, Version: u.Version, CreatedAt: dbtest.At(2), ExpiresAt: dbtest.At(100)}
}

func valid(t *testing.T, s *Store, hash string) bool {
	t.Helper()
	_, _, err := s.Session(t.Context(), hash, dbtest.At(50))
	if err != nil && relay.KindOf(err) != relay.KindNotFound {
		t.Fatal(err)
	}
	return err == nil
}

func comesBack(t *testing.T, s *Store) {
	want := anna()
	relaytest.NoError(t, s.CreateUser(t.Context(), want))
	got, err := s.User(t.Context(), "anna")
	relaytest.NoError(t, err)
	if diff := cmp.Diff(want, got); diff != "" {
		t.Error(diff)
	}
	relaytest.NoError(t, s.CreateSession(t.Context(), session(want, "h")))
	want.SignedInAt = dbtest.At(2)
	who, expiresAt, err := s.Session(t.Context(), "h", dbtest.At(3))
	relaytest.NoError(t, err)
	relaytest.Equal(t, "the expiry of the session", expiresAt, dbtest.At(100))
	if diff := cmp.Diff(want, who); diff != "" {
		t.Error(diff)
	}
	got, err = s.UserBySubject(t.Context(), want.Subject)
	relaytest.NoError(t, err)
	relaytest.Equal(t, "result of UserBySubject", got, want)
	_, err = s.UserBySubject(t.Context(), "")
	wantKind(t, err, relay.KindNotFound)
	all, err := s.Users(t.Context())
	relaytest.NoError(t, err)
	if len(all) != 1 {
		t.Fatalf("result of Users: %d results, want %d", len(all), 1)
	}
	relaytest.Equal(t, "result of Users, [0]", all[0], want)
}

func takenOnce(t *testing.T, s *Store) {
	a := anna()
	relaytest.NoError(t, s.CreateUser(t.Context(), a))
	same := User{ID: "u2", Name: "anna", Version: 1}
	wantKind(t, s.CreateUser(t.Context(), same), relay.KindConflict)
	same.Name, same.Subject = "other", a.Subject
	wantKind(t, s.CreateUser(t.Context(), same), relay.KindConflict)
	same.Subject = ""
	relaytest.NoError(t, s.CreateUser(t.Context(), same), s.CreateUser(t.Context(), User{ID: "u3", Name: "third", Version: 1}))
	_, _, err := s.ChangeUser(t.Context(), "other", func(u *User) error { u.Name = "anna"; return nil })
	wantKind(t, err, relay.KindConflict)
}

func changeEndsSessions(t *testing.T, s *Store) {
	u := anna()
	relaytest.NoError(t, s.CreateUser(t.Context(), u), s.CreateSession(t.Context(), session(u, "h")))
	_, _, err := s.ChangeUser(t.Context(), "anna", func(*User) error { return nil })
	relaytest.NoError(t, err)
	if !valid(t, s, "h") {
		t.Error("the session ended although nothing changed")
	}
	refused := errors.New("refused")
	if _, _, err := s.ChangeUser(t.Context(), "anna", func(u *User) error { u.Role = Admin; return refused }); !errors.Is(err, refused) || !valid(t, s, "h") {
		t.Errorf("a change that failed: %v", err)
	}
	was, is, err := s.ChangeUser(t.Context(), "anna", func(u *User) error { u.Disabled = true; return nil })
	relaytest.NoError(t, err)
	relaytest.Equal(t, "result of ChangeUser, Disabled", was.Disabled, false)
	relaytest.Equal(t, "result of ChangeUser, is.Disabled", is.Disabled, true)
	relaytest.Equal(t, "result of ChangeUser, is.Version", is.Version, 2)
	if valid(t, s, "h") {
		t.Error("the session outlives the change")
	}
	_, _, err = s.ChangeUser(t.Context(), "nobody", func(*User) error { return nil })
	wantKind(t, err, relay.KindNotFound)
}

func staleSession(t *testing.T, s *Store) {
	u := anna()
	relaytest.NoError(t, s.CreateUser(t.Context(), u))
	_, _, err := s.ChangeUser(t.Context(), "anna", func(u *User) error { u.Disabled = true; return nil })
	relaytest.NoError(t, err)
	wantKind(t, s.CreateSession(t.Context(), session(u, "h")), relay.KindNotFound)
	if valid(t, s, "h") {
		t.Error("it began")
	}
}

func sessionsEnd(t *testing.T, s *Store) {
	u := anna()
	relaytest.NoError(t, s.CreateUser(t.Context(), u), s.CreateSession(t.Context(), session(u, "a")), s.CreateSession(t.Context(), session(u, "b")))
	_, _, err := s.Session(t.Context(), "a", dbtest.At(100))
	wantKind(t, err, relay.KindNotFound)
	relaytest.NoError(t, s.DeleteSession(t.Context(), "a"), s.DeleteSession(t.Context(), "none"))
	if valid(t, s, "a") || !valid(t, s, "b") {
		t.Error("the wrong session was deleted")
	}
	relaytest.NoError(t, s.Sweep(t.Context(), dbtest.At(99)))
	if !valid(t, s, "b") {
		t.Error("it was swept too early")
	}
	relaytest.NoError(t, s.Sweep(t.Context(), dbtest.At(100)))
	if _, _, err := s.Session(t.Context(), "b", time.Time{}); relay.KindOf(err) != relay.KindNotFound {
		t.Errorf("it was not swept: %v", err)
	}
}

func removedUser(t *testing.T, s *Store) {
	u := anna()
	relaytest.NoError(t, s.CreateUser(t.Context(), u), s.CreateSession(t.Context(), session(u, "h")))
	got, err := s.RemoveUser(t.Context(), "anna")
	if err != nil || got.ID != "u1" || valid(t, s, "h") {
		t.Errorf("%+v, %v", got, err)
	}
	_, err = s.RemoveUser(t.Context(), "anna")
	wantKind(t, err, relay.KindNotFound)
}
