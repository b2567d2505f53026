package user

import (
	"cmp"
	"context"
	"fmt"
	"time"

	"github.com/penstock/penstock/relay"
	"github.com/penstock/penstock/relay/account"
)

// Options configures a Service; the zero value works.
type Options struct {
	// SessionTime is the duration of a session; 0 means 12 hours.
	SessionTime time.Duration
	Now         func() time.Time // nil means time.Now
}

// Service manages users and their sessions. It is safe for concurrent use.
type Service struct {
	store     *Store
	o         Options
	slots     chan struct{} // has an element for each password that is being hashed
	dummyHash string
}

const (
	// maxConcurrentHashes bounds the load of sign-ins: each hash takes 19 MiB and a processor.
	maxConcurrentHashes = 2
	// maxSignInWait is the longest time for which a sign-in waits for the hashing of other
	// passwords.
	maxSignInWait = 5 * time.Second
)

// New returns the service of users.
func New(store *Store, o Options) *Service {
	o.SessionTime = cmp.Or(o.SessionTime, 12*time.Hour)
	if o.Now == nil {
		o.Now = time.Now
	}
	return &Service{store: store, o: o, slots: make(chan struct{}, maxConcurrentHashes), dummyHash: account.DummyHash()}
}

// Users lists all users by name.
func (s *Service) Users(ctx context.Context) ([]User, error) { return s.store.Users(ctx) }

// User returns the user with a name; relay.KindNotFound if there is none.
func (s *Service) User(ctx context.Context, name string) (User, error) {
	parsedName, ok := ParseName(name)
	if !ok {
		return User{}, relay.Errorf(relay.KindNotFound, "user %q: not found", name)
	}
	return s.store.User(ctx, parsedName)
}

// NewUser describes a user to add.
type NewUser struct {
	Name     string
	Role     Role
	Account  relay.AccountID // for the role Account
	Password string
}

// Add saves a new user. It returns relay.KindInvalid for an invalid field and relay.KindConflict
// for a name that is taken.
func (s *Service) Add(ctx context.Context, n NewUser) (User, error) {
	now := s.o.Now().UTC()
	u := User{ID: relay.NewID(now), Role: n.Role, Account: n.Account, Provider: Password, CreatedAt: now, ChangedAt: now, Version: 1}
	problems := relay.Problems{}
	var ok bool
	if u.Name, ok = ParseName(n.Name); !ok {
		problems.Add("name", "must be at most 100 letters, digits and . _ @ + - without blanks")
	}
	u.check(problems)
	checkPassword(problems, "password", n.Password)
	err := problems.Err()
	if err != nil {
		return User{}, err
	}
	if u.Password, err = s.hashPassword(ctx, n.Password); err != nil {
		return User{}, err
	}
	return u, s.store.CreateUser(ctx, u)
}

// Change describes a change of a user; a nil field is left unchanged.
type Change struct {
	Role     *Role
	Account  *relay.AccountID // 0 removes it
	Password *string
	Disabled *bool
}

// Change changes a user, ends the user's sessions, and returns the user before and after the change.
// It returns relay.KindInvalid for an invalid field, and for the role, account or password of a
// user of an OpenID Connect provider, which the provider sets.
func (s *Service) Change(ctx context.Context, name string, c Change) (oldUser, newUser User, err error) {
	u, err := s.User(ctx, name)
	if err != nil {
		return oldUser, newUser, err
	}
	hash := ""
	if c.Password != nil {
		problems := relay.Problems{}
		checkPassword(problems, "password", *c.Password)
		if err := problems.Err(); err != nil {
			return oldUser, newUser, err
		}
		if hash, err = s.hashPassword(ctx, *c.Password); err != nil {
			return oldUser, newUser, err
		}
	}
	return s.store.ChangeUser(ctx, u.Name, func(u *User) error { return u.apply(c, hash, s.o.Now().UTC()) })
}

// apply applies a change; hash is the hash of the new password, or empty if it does not change.
func (u *User) apply(c Change, hash string, now time.Time) error {
	problems := relay.Problems{}
	if u.Provider != Password {
		for field, isSet := range map[string]bool{"role": c.Role != nil, "account": c.Account != nil, "password": c.Password != nil} {
			if isSet {
				problems.Add(field, fmt.Sprintf("The %s of this user is set by the OpenID Connect provider.", field))
			}
		}
	}
	oldUser := *u
	if c.Role != nil {
		if u.Role = *c.Role; u.Role != Account && c.Account == nil {
			u.Account = 0
		}
	}
	relay.Assign(&u.Account, c.Account)
	relay.Assign(&u.Disabled, c.Disabled)
	if hash != "" {
		u.Password = hash
	}
	u.check(problems)
	if *u != oldUser {
		u.ChangedAt = now
	}
	return problems.Err()
}

// Remove deletes a user and the user's sessions, and returns the user.
func (s *Service) Remove(ctx context.Context, name string) (User, error) {
	u, err := s.User(ctx, name)
	if err != nil {
		return User{}, err
	}
	return s.store.RemoveUser(ctx, u.Name)
}
