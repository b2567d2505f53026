package inventory

import (
	"context"
	"fmt"

	document "github.com/penstock/penstock/config/inventory"
	"github.com/penstock/penstock/relay"
	"github.com/penstock/penstock/relay/account"
	"github.com/penstock/penstock/relay/credit"
	"github.com/penstock/penstock/relay/db"
)

// checkAccount returns an Invalid error, by field, for settings that are invalid in a document.
func (s *Service) checkAccount(a account.Account, credits int64) error {
	declared := document.Account{
		Name: a.Name, Credit: &credits, Permissions: a.Permissions, WebhookSecrets: a.WebhookSecrets, CallbackURL: a.CallbackURL,
	}
	problems := relay.Problems{}
	for _, m := range declared.Check(document.Options{CheckURL: s.CheckURL, AllowHTTPCallback: s.AllowHTTPCallback}) {
		problems.Add(m.Path, m.Text)
	}
	return problems.Err()
}

// AddAccount saves a new account with its first credit and returns it with its id. It
// returns an Invalid error, by field, and a Conflict error if another account has the name.
func (s *Service) AddAccount(ctx context.Context, a account.Account, credits int64) (account.Account, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if err := s.checkAccount(a, credits); err != nil {
		return a, err
	}
	if document.NumericName(a.Name) {
		return a, relay.Invalid("name", "The name must not be a number, which would be read as an account's id.")
	}
	if credits > credit.MaxAmount {
		return a, relay.Invalid("credit", fmt.Sprintf("The credit must be at most %d.", credit.MaxAmount))
	}
	id, err := s.Accounts.AddAccount(ctx, a, func(ctx context.Context, tx *db.Tx, id relay.AccountID) error {
		return credit.Open(ctx, tx, id, credits, s.Now())
	})
	a.ID = id
	return a, err
}

// ChangeAccount changes the settings of an account other than its id and name. It returns
// the account before and after.
func (s *Service) ChangeAccount(ctx context.Context, id relay.AccountID, change func(*account.Account)) (oldAccount, newAccount account.Account, err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	oldAccount, err = s.Accounts.Account(ctx, id)
	if err != nil {
		return oldAccount, newAccount, err
	}
	newAccount = oldAccount
	change(&newAccount)
	if err := s.checkAccount(newAccount, 0); err != nil {
		return oldAccount, newAccount, err
	}
	_, err = s.Accounts.PutAccounts(ctx, []account.Account{newAccount}, []account.Account{oldAccount})
	return oldAccount, newAccount, err
}

// Owners returns the documents that own accounts.
func (s *Service) Owners(ctx context.Context) (document.Owners, error) {
	stored, err := s.loadSet(ctx)
	return stored.set.Owners(), err
}

// RemoveAccount deletes an account with its records and returns the deleted account. It returns an
// Invalid error if a document declares the account, because the next apply would create it
// again, or if the account has data that would be lost.
func (s *Service) RemoveAccount(ctx context.Context, id relay.AccountID) (account.Account, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	a, err := s.Accounts.Account(ctx, id)
	if err != nil {
		return a, err
	}
	owners, err := s.Owners(ctx)
	if err != nil {
		return a, err
	}
	if owner := owners.OwnerOf(document.Account{ID: int64(id), Name: a.Name}); owner != "" {
		return a, relay.Invalid("account", "The inventory document "+owner+" declares the account: apply the document without it and with prune first.")
	}
	return a, s.Accounts.DeleteAccount(ctx, id)
}
