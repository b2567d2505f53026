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

// SignInResult is a user with a session. Only the browser has Token; the store has its hash.
type SignInResult struct {
	User      User
	Token     string
	ExpiresAt time.Time
}

// CSRF returns a value that is derived from the session's token. Other sites cannot read the value, so
// a request that has it comes from a page of the gateway.
func (s SignInResult) CSRF() string {
	sum := sha256.Sum256([]byte("csrf\x00" + s.Token))
	return base64.RawURLEncoding.EncodeToString(sum[:])
}

// errSignIn returns the error of every refused sign-in with a password.
func errSignIn() error {
	return relay.Errorf(relay.KindUnauthenticated, "The name or the password is wrong.")
}

// SignIn begins a session of a user with a password. It returns relay.KindUnauthenticated for a
// wrong name, a wrong password and a disabled user; the text and the response time are the same
// for all of them. It returns relay.KindUnavailable if too many passwords are being hashed.
func (s *Service) SignIn(ctx context.Context, name, password string) (SignInResult, error) {
	u, err := s.verify(ctx, name, password)
	if err != nil {
		return SignInResult{}, err
	}
	return s.beginSession(ctx, u)
}

// verify returns the user with a name and a password.
func (s *Service) verify(ctx context.Context, name, password string) (User, error) {
	u, err := s.User(ctx, name)
	verifiable := err == nil && u.Provider == Password && !u.Disabled
	if err != nil && relay.KindOf(err) != relay.KindNotFound {
		return User{}, err
	}
	hash := s.dummyHash
	if verifiable {
		hash = u.Password
	}
	if len(password) > maxPassword {
		password, verifiable = "", false
	}
	release, err := s.acquireSlot(ctx)
	if err != nil {
		return User{}, err
	}
	defer release()
	ok, err := account.VerifyPassword(hash, account.HashToken(password))
	if err != nil {
		return User{}, err
	}
	if !ok || !verifiable {
		return User{}, errSignIn()
	}
	return u, nil
}

func (s *Service) hashPassword(ctx context.Context, password string) (string, error) {
	release, err := s.acquireSlot(ctx)
	if err != nil {
		return "", err
	}
	defer release()
	return account.HashPassword(account.HashToken(password)), nil
}

// acquireSlot waits until a password may be hashed.
func (s *Service) acquireSlot(ctx context.Context) (release func(), err error) {
	timeout := time.NewTimer(maxSignInWait)
	defer timeout.Stop()
	select {
	case s.slots <- struct{}{}:
		return func() { <-s.slots }, nil
	case <-ctx.Done():
	case <-timeout.C:
	}
	return nil, relay.Errorf(relay.KindUnavailable, "too many sign-ins at once")
}

// beginSession saves a session.
func (s *Service) beginSession(ctx context.Context, u User) (SignInResult, error) {
	now := s.o.Now().UTC()
	signedIn := SignInResult{User: u, Token: rand.Text() + rand.Text(), ExpiresAt: now.Add(s.o.SessionTime)}
	err := s.store.CreateSession(ctx, Session{
		Hash: account.HashToken(signedIn.Token), UserID: u.ID, Version: u.Version, CreatedAt: now, ExpiresAt: signedIn.ExpiresAt,
	})
	if relay.KindOf(err) == relay.KindNotFound {
		err = errSignIn() // the user was changed or removed since verify
	}
	return signedIn, err
}

// Session returns the user of a session's token; relay.KindUnauthenticated if the
// session has ended.
func (s *Service) Session(ctx context.Context, token string) (SignInResult, error) {
	u, expiresAt, err := s.store.Session(ctx, account.HashToken(token), s.o.Now())
	if relay.KindOf(err) == relay.KindNotFound {
		return SignInResult{}, relay.Errorf(relay.KindUnauthenticated, "the session has ended")
	}
	return SignInResult{User: u, Token: token, ExpiresAt: expiresAt}, err
}

// SignOut ends a session.
func (s *Service) SignOut(ctx context.Context, token string) error {
	return s.store.DeleteSession(ctx, account.HashToken(token))
}

// SetOwnPassword changes the password of a user who gives the current password, and ends the user's
// sessions. It returns relay.KindInvalid for a wrong current password or an invalid new one.
func (s *Service) SetOwnPassword(ctx context.Context, name, current, password string) error {
	if _, err := s.verify(ctx, name, current); relay.KindOf(err) == relay.KindUnauthenticated {
		return relay.Invalid("password", "The password is wrong.")
	} else if err != nil {
		return err
	}
	problems := relay.Problems{}
	checkPassword(problems, "new_password", password)
	if err := problems.Err(); err != nil {
		return err
	}
	_, _, err := s.Change(ctx, name, Change{Password: &password})
	return err
}

// SignInAs begins a session for an identity that a provider has verified; acct is the account of
// the role Account. It adds a new user, or updates the name, role and account of a known user. It
// returns relay.KindForbidden if the person may not sign in.
func (s *Service) SignInAs(ctx context.Context, identity Identity, acct relay.AccountID) (SignInResult, error) {
	name, ok := ParseName(identity.Name)
	if !ok {
		return SignInResult{}, relay.Errorf(relay.KindForbidden, "the provider gives no usable name: %q", identity.Name)
	}
	u, err := s.store.UserBySubject(ctx, identity.Subject)
	switch {
	case relay.KindOf(err) == relay.KindNotFound:
		now := s.o.Now().UTC()
		u = User{
			ID: relay.NewID(now), Name: name, Role: identity.Role, Account: acct, Provider: OIDC, Subject: identity.Subject,
			CreatedAt: now, ChangedAt: now, Version: 1,
		}
		err = s.store.CreateUser(ctx, u)
	case err == nil:
		_, u, err = s.store.ChangeUser(ctx, u.Name, func(u *User) error {
			oldUser := *u
			if u.Name, u.Role, u.Account = name, identity.Role, acct; *u != oldUser {
				u.ChangedAt = s.o.Now().UTC()
			}
			return nil
		})
	}
	switch {
	case relay.KindOf(err) == relay.KindConflict:
		return SignInResult{}, relay.Errorf(relay.KindForbidden, "another user is named %s", name)
	case err != nil:
		return SignInResult{}, err
	case u.Disabled:
		return SignInResult{}, relay.Errorf(relay.KindForbidden, "the user %s is disabled", name)
	}
	return s.beginSession(ctx, u)
}
