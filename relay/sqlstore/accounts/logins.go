package accounts

import (
	"context"

	"github.com/penstock/penstock/relay/account"
	"github.com/penstock/penstock/relay/sqlstore"
)

func logins() sqlstore.Documents[account.Login] {
	return sqlstore.Documents[account.Login]{Noun: "login", Table: "login"}
}

// Login loads the login of a username.
func (s *Store) Login(ctx context.Context, username string) (account.Login, error) {
	return logins().Get(ctx, s.db, 0, username)
}

// PutLogin saves a login.
func (s *Store) PutLogin(ctx context.Context, l account.Login) error {
	return s.db.Write(ctx, "login", func(ctx context.Context, tx *sqlstore.Tx) error {
		return logins().Put(ctx, tx, 0, l.Username, l)
	})
}

// DeleteLogin deletes the login of a username, if it has one.
func (s *Store) DeleteLogin(ctx context.Context, username string) error {
	return s.db.Write(ctx, "login", func(ctx context.Context, tx *sqlstore.Tx) error {
		_, err := logins().Delete(ctx, tx, 0, username)
		return err
	})
}
