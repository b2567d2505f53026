package user

import (
	"context"
	"crypto/rand"
	"crypto/sha256"
	"encoding/base64"
	"time"

	"github.com/penstock/penstock/relay"
	"github.com/penstock/penstock/relay/account"
)

// SignedIn is a user with a session. The browser keeps Token, which is not stored.
type SignedIn struct {
	User      User
	Token     string
	ExpiresAt time.Time
}

// CSRF returns the text that proves that a request comes from a page that could read
// the session, which other sites cannot. It is derived from the session's token.
func (s SignedIn) CSRF() string {
	sum := sha256.Sum256([]byte("csrf\x00" + s.Token))
	return base64.RawURLEncoding.EncodeToString(sum[:])
}

// errSignIn returns the same error for a wrong name, a wrong password and a user who
// must not sign in with a password.
func errSignIn() error {
	return relay.Errorf(relay.KindUnauthenticated, "The name or the password is wrong.")
}

// SignIn begins a session of a user with a password. The error is
// relay.KindUnauthenticated, with the same text and after the same time whether the
// name, the password or the user's state is the cause, and relay.KindUnavailable if
// too many sign in at once.
func (s *Service) SignIn(ctx context.Context, name, password string) (SignedIn, error) {
	u, err := s.verified(ctx, name, password)
	if err != nil {
		return SignedIn{}, err
	}
	return s.begin(ctx, u)
}

// verified returns the user of a name and password.
func (s *Service) verified(ctx context.Context, name, password string) (User, error) {
	u, err := s.User(ctx, name)
	known := err == nil && u.Provider == Password && !u.Disabled
	if err != nil && relay.KindOf(err) != relay.KindNotFound {
		return User{}, err
	}
	hash := s.dummyHash
	if known {
		hash = u.Password
	}
	if len(password) > maxPassword {
		password, known = "", false
	}
	release, err := s.acquire(ctx)
	if err != nil {
		return User{}, err
	}
	defer release()
	ok, err := account.VerifyPassword(hash, account.HashToken(password))
	if err != nil {
		return User{}, err
	}
	if !ok || !known {
		return User{}, errSignIn()
	}
	return u, nil
}

func (s *Service) hash(ctx context.Context, password string) (string, error) {
	release, err := s.acquire(ctx)
	if err != nil {
		return "", err
	}
	defer release()
	return account.HashPassword(account.HashToken(password)), nil
}

// acquire waits until a password may be hashed.
func (s *Service) acquire(ctx context.Context) (release func(), err error) {
	late := time.NewTimer(s.o.SignInWait)
	defer late.Stop()
	select {
	case s.slots <- struct{}{}:
		return func() { <-s.slots }, nil
	case <-ctx.Done():
	case <-late.C:
	}
	return nil, relay.Errorf(relay.KindUnavailable, "too many sign-ins at once")
}

// begin saves a session.
func (s *Service) begin(ctx context.Context, u User) (SignedIn, error) {
	now := s.o.Now().UTC()
	in := SignedIn{User: u, Token: rand.Text() + rand.Text(), ExpiresAt: now.Add(s.o.SessionTime)}
	err := s.store.CreateSession(ctx, Session{
		Hash: account.HashToken(in.Token), UserID: u.ID, Version: u.Version, CreatedAt: now, ExpiresAt: in.ExpiresAt,
	})
	if relay.KindOf(err) == relay.KindNotFound {
		err = errSignIn() // the user was changed meanwhile
	}
	return in, err
}

// Session returns the user of a session's token; relay.KindUnauthenticated if the
// session has ended.
func (s *Service) Session(ctx context.Context, token string) (SignedIn, error) {
	kept, u, err := s.store.Session(ctx, account.HashToken(token), s.o.Now())
	if relay.KindOf(err) == relay.KindNotFound {
		return SignedIn{}, relay.Errorf(relay.KindUnauthenticated, "the session has ended")
	}
	return SignedIn{User: u, Token: token, ExpiresAt: kept.ExpiresAt}, err
}

// SignOut ends a session.
func (s *Service) SignOut(ctx context.Context, token string) error {
	return s.store.DeleteSession(ctx, account.HashToken(token))
}

// SetOwnPassword changes the password of a user who knows the present one, and ends
// the user's sessions. relay.KindInvalid names the field that is wrong.
func (s *Service) SetOwnPassword(ctx context.Context, name, present, password string) error {
	if _, err := s.verified(ctx, name, present); relay.KindOf(err) == relay.KindUnauthenticated {
		return relay.Invalid("password", "The password is wrong.")
	} else if err != nil {
		return err
	}
	p := relay.Problems{}
	checkPassword(p, "new_password", password)
	if err := p.Err(); err != nil {
		return err
	}
	_, _, err := s.Change(ctx, name, Change{Password: &password})
	return err
}

// SignInAs begins a session of a person whom a provider vouches for; acct is the
// account of the role Account. A new person becomes a user, a known one gets the
// current name, role and account of the provider. relay.KindForbidden says why a
// person may not sign in.
func (s *Service) SignInAs(ctx context.Context, who Identity, acct relay.AccountID) (SignedIn, error) {
	name, ok := ParseName(who.Name)
	if !ok {
		return SignedIn{}, relay.Errorf(relay.KindForbidden, "the provider gives no usable name: %q", who.Name)
	}
	u, err := s.store.UserBySubject(ctx, who.Subject)
	switch {
	case relay.KindOf(err) == relay.KindNotFound:
		now := s.o.Now().UTC()
		u = User{
			ID: relay.NewID(now), Name: name, Role: who.Role, Account: acct, Provider: OIDC, Subject: who.Subject,
			CreatedAt: now, ChangedAt: now, Version: 1,
		}
		err = s.store.CreateUser(ctx, u)
	case err == nil:
		_, u, err = s.store.ChangeUser(ctx, u.Name, func(u *User) error {
			was := *u
			if u.Name, u.Role, u.Account = name, who.Role, acct; *u != was {
				u.ChangedAt = s.o.Now().UTC()
			}
			return nil
		})
	}
	switch {
	case relay.KindOf(err) == relay.KindConflict:
		return SignedIn{}, relay.Errorf(relay.KindForbidden, "another user is named %s", name)
	case err != nil:
		return SignedIn{}, err
	case u.Disabled:
		return SignedIn{}, relay.Errorf(relay.KindForbidden, "the user %s is disabled", name)
	}
	return s.begin(ctx, u)
}
