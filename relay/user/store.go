package user

import (
	"context"
	"time"

	"github.com/penstock/penstock/relay"
	"github.com/penstock/penstock/relay/db"
)

// Store is a Store.
type Store struct{ db *db.DB }

// New returns the store of users.
func NewStore(database *db.DB) *Store { return &Store{db: database} }

// fields are the columns of a user.
func fields(u *User) []any {
	return []any{db.JSON(u), &u.Version, db.Time(&u.SignedInAt)}
}

const selectUser = "SELECT doc, version, signed_in FROM admin_user "

// User loads a user by its name.
func (s *Store) User(ctx context.Context, name string) (User, error) {
	return db.One(ctx, s.db, "user "+name, selectUser+"WHERE name = $1", fields, name)
}

// UserBySubject loads a user of a provider.
func (s *Store) UserBySubject(ctx context.Context, subject string) (User, error) {
	return db.One(ctx, s.db, "user", selectUser+"WHERE subject = $1 AND subject <> ''", fields, subject)
}

// Users lists all users by name.
func (s *Store) Users(ctx context.Context) ([]User, error) {
	return db.List(ctx, s.db, "users", selectUser+"ORDER BY name", fields)
}

// CreateUser saves a new user.
func (s *Store) CreateUser(ctx context.Context, u User) error {
	return db.ChangeOr(ctx, s.db, taken(u.Name), "user "+u.Name, `
INSERT INTO admin_user (id, name, subject, version, doc) VALUES ($1, $2, $3, $4, $5)
ON CONFLICT DO NOTHING`, u.ID, u.Name, u.Subject, u.Version, db.JSON(u))
}

func taken(name string) error {
	return relay.Errorf(relay.KindConflict, "There is a user named %s already.", name)
}

// ChangeUser saves what change makes of a user and ends its sessions.
func (s *Store) ChangeUser(ctx context.Context, name string, change func(*User) error) (was, is User, err error) {
	err = s.db.Write(ctx, "user "+name, func(ctx context.Context, tx *db.Tx) (err error) {
		was, err = db.One(ctx, tx, "user "+name, selectUser+"WHERE name = $1 {for update}", fields, name)
		if err != nil {
			return err
		}
		is = was
		if err := change(&is); err != nil || is == was {
			return err
		}
		is.Version++
		return tx.RunAll(ctx, "user "+name, db.Do(`
UPDATE admin_user SET name = $1, version = $2, doc = $3
WHERE id = $4 AND NOT EXISTS (SELECT 1 FROM admin_user o WHERE o.name = $1 AND o.id <> $4)`,
			is.Name, is.Version, db.JSON(is), is.ID).Or(taken(is.Name)), endSessions(is.ID))
	})
	return was, is, err
}

// RemoveUser deletes a user with its sessions.
func (s *Store) RemoveUser(ctx context.Context, name string) (u User, err error) {
	err = s.db.Write(ctx, "user "+name, func(ctx context.Context, tx *db.Tx) (err error) {
		u, err = db.One(ctx, tx, "user "+name, selectUser+"WHERE name = $1 {for update}", fields, name)
		if err != nil {
			return err
		}
		return tx.RunAll(ctx, "user "+name, endSessions(u.ID), db.Do("DELETE FROM admin_user WHERE id = $1", u.ID))
	})
	return u, err
}

func endSessions(userID string) db.Statement {
	return db.Do("DELETE FROM admin_session WHERE user_id = $1", userID)
}

// CreateSession saves a session of a user that has not changed since.
func (s *Store) CreateSession(ctx context.Context, n Session) error {
	return s.db.RunAll(ctx, "session",
		db.Do("UPDATE admin_user SET signed_in = $1 WHERE id = $2 AND version = $3",
			n.CreatedAt, n.UserID, n.Version).Or(db.NotFound("user of the session")),
		db.Do(`
INSERT INTO admin_session (hash, user_id, version, created, expires) VALUES ($1, $2, $3, $4, $5)
ON CONFLICT (hash) DO NOTHING`, n.Hash, n.UserID, n.Version, n.CreatedAt, n.ExpiresAt))
}

// Session loads a session that is valid at a time, with its user.
func (s *Store) Session(ctx context.Context, hash string, now time.Time) (Session, User, error) {
	type row struct {
		of  Session
		who User
	}
	r, err := db.One(ctx, s.db, "session", `
SELECT s.hash, s.user_id, s.version, s.created, s.expires, u.doc, u.version, u.signed_in
FROM admin_session s JOIN admin_user u ON u.id = s.user_id AND u.version = s.version
WHERE s.hash = $1 AND s.expires > $2`, func(r *row) []any {
		return append([]any{&r.of.Hash, &r.of.UserID, &r.of.Version, db.Time(&r.of.CreatedAt), db.Time(&r.of.ExpiresAt)}, fields(&r.who)...)
	}, hash, now)
	return r.of, r.who, err
}

// DeleteSession ends a session, if there is one.
func (s *Store) DeleteSession(ctx context.Context, hash string) error {
	return s.db.Run(ctx, "session", "DELETE FROM admin_session WHERE hash = $1", hash)
}

// Sweep deletes the sessions that have expired.
func (s *Store) Sweep(ctx context.Context, now time.Time) error {
	return s.db.SweepExpired(ctx, "sessions", "admin_session", "hash", "expires", now)
}
