package user

import (
	"context"
	"time"
)

// Store keeps users and sessions.
type Store interface {
	// User loads a user by its name; relay.KindNotFound if there is none.
	User(ctx context.Context, name string) (User, error)
	// Users lists all users by name.
	Users(ctx context.Context) ([]User, error)
	// CreateUser saves a new user; relay.KindConflict if its name or subject is taken.
	CreateUser(ctx context.Context, u User) error
	// ChangeUser saves what change makes of the user of a name and ends its sessions,
	// unless nothing has changed. It returns the user before and after.
	ChangeUser(ctx context.Context, name string, change func(*User) error) (was, is User, err error)
	// RemoveUser deletes a user with its sessions and returns it.
	RemoveUser(ctx context.Context, name string) (User, error)
	// UserBySubject loads a user of a provider.
	UserBySubject(ctx context.Context, subject string) (User, error)

	// CreateSession saves a session; relay.KindNotFound if the user has been changed
	// or removed since it was read.
	CreateSession(ctx context.Context, s Session) error
	// Session loads a session with its user by the hash of its token;
	// relay.KindNotFound if there is none that is valid at the time.
	Session(ctx context.Context, hash string, now time.Time) (Session, User, error)
	// DeleteSession ends a session, if there is one.
	DeleteSession(ctx context.Context, hash string) error
}
