package user

import (
	"context"
	"time"

	"github.com/penstock/penstock/relay"
	"github.com/penstock/penstock/relay/db"
)

// Store stores users and their sessions. It is safe for concurrent use.
type Store struct{ db *db.DB }

// NewStore returns the store of users.
func NewStore(database *db.DB) *Store { return &Store{db: database} }

const (
	selectUsers = `
		SELECT doc, version, signed_in
		FROM admin_user `
	lockUser = selectUsers + `
		WHERE name = $1
		{for update}`
	endSessions = `
		DELETE FROM admin_session
		WHERE user_id = $1`
)

// userFields returns pointers for the columns of selectUsers.
func userFields(u *User) []any {
	return []any{db.JSON(u), &u.Version, db.Time(&u.SignedInAt)}
}

// User loads a user by name; relay.KindNotFound if there is none.
func (s *Store) User(ctx context.Context, name string) (User, error) {
	return db.One(ctx, s.db, "user "+name, selectUsers+"WHERE name = $1", userFields, name)
}

// UserBySubject loads a user of a provider; relay.KindNotFound if there is none.
func (s *Store) UserBySubject(ctx context.Context, subject string) (User, error) {
	return db.One(ctx, s.db, "user", selectUsers+"WHERE subject = $1 AND subject <> ''", userFields, subject)
}

// Users lists all users by name.
func (s *Store) Users(ctx context.Context) ([]User, error) {
	return db.List(ctx, s.db, "users", selectUsers+"ORDER BY name", userFields)
}

// CreateUser saves a new user; relay.KindConflict if the name or the subject is taken.
func (s *Store) CreateUser(ctx context.Context, u User) error {
	const statement = `
		INSERT INTO admin_user (id, name, subject, version, doc)
		VALUES ($1, $2, $3, $4, $5)
		ON CONFLICT DO NOTHING`
	return db.ChangeOr(ctx, s.db, errNameTaken(u.Name), "user "+u.Name, statement, u.ID, u.Name, u.Subject, u.Version, db.JSON(u))
}

func errNameTaken(name string) error {
	return relay.Errorf(relay.KindConflict, "A user named %s already exists.", name)
}

// ChangeUser calls change with a user, saves the user and ends the user's sessions. It does nothing if
// change leaves the user unchanged. It returns the user before and after the change. The error is
// relay.KindConflict if the new name is taken.
func (s *Store) ChangeUser(ctx context.Context, name string, change func(*User) error) (oldUser, newUser User, err error) {
	const save = `
		UPDATE admin_user
		SET name = $1, version = $2, doc = $3
		WHERE id = $4
		  AND NOT EXISTS (SELECT 1 FROM admin_user other WHERE other.name = $1 AND other.id <> $4)`
	label := "user " + name
	err = s.db.Write(ctx, label, func(ctx context.Context, tx *db.Tx) (err error) {
		if oldUser, err = db.One(ctx, tx, label, lockUser, userFields, name); err != nil {
			return err
		}
		newUser = oldUser
		if err := change(&newUser); err != nil || newUser == oldUser {
			return err
		}
		newUser.Version++
		return tx.RunAll(ctx, label,
			db.Do(save, newUser.Name, newUser.Version, db.JSON(newUser), newUser.ID).Or(errNameTaken(newUser.Name)),
			db.Do(endSessions, newUser.ID))
	})
	return oldUser, newUser, err
}

// RemoveUser deletes a user and the user's sessions, and returns the user.
func (s *Store) RemoveUser(ctx context.Context, name string) (User, error) {
	const deleteUser = `
		DELETE FROM admin_user
		WHERE id = $1`
	label := "user " + name
	return db.Transact(ctx, s.db, label, func(ctx context.Context, tx *db.Tx) (User, error) {
		u, err := db.One(ctx, tx, label, lockUser, userFields, name)
		if err != nil {
			return u, err
		}
		return u, tx.RunAll(ctx, label, db.Do(endSessions, u.ID), db.Do(deleteUser, u.ID))
	})
}

// CreateSession saves a session; relay.KindNotFound if the user was changed or removed
// since the caller loaded it.
func (s *Store) CreateSession(ctx context.Context, session Session) error {
	const (
		signIn = `
			UPDATE admin_user
			SET signed_in = $1
			WHERE id = $2
			  AND version = $3`
		insert = `
			INSERT INTO admin_session (hash, user_id, version, created, expires)
			VALUES ($1, $2, $3, $4, $5)
			ON CONFLICT (hash) DO NOTHING`
	)
	return s.db.RunAll(ctx, "session",
		db.Do(signIn, session.CreatedAt, session.UserID, session.Version).Or(db.NotFound("user of the session")),
		db.Do(insert, session.Hash, session.UserID, session.Version, session.CreatedAt, session.ExpiresAt))
}

// Session returns the user of a session that is valid at a time, and the time at which the
// session expires; relay.KindNotFound if there is no such session.
func (s *Store) Session(ctx context.Context, hash string, now time.Time) (u User, expiresAt time.Time, err error) {
	const query = `
		SELECT s.expires, u.doc, u.version, u.signed_in
		FROM admin_session s
		JOIN admin_user u ON u.id = s.user_id AND u.version = s.version
		WHERE s.hash = $1
		  AND s.expires > $2`
	fields := func(u *User) []any { return append([]any{db.Time(&expiresAt)}, userFields(u)...) }
	u, err = db.One(ctx, s.db, "session", query, fields, hash, now)
	return u, expiresAt, err
}

// DeleteSession ends a session, if there is one.
func (s *Store) DeleteSession(ctx context.Context, hash string) error {
	const statement = `
		DELETE FROM admin_session
		WHERE hash = $1`
	return s.db.Run(ctx, "session", statement, hash)
}

// Sweep deletes the sessions that have expired.
func (s *Store) Sweep(ctx context.Context, now time.Time) error {
	return s.db.SweepExpired(ctx, "sessions", "admin_session", "hash", "expires", now)
}
