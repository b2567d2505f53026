package inventory

import (
	"context"

	document "github.com/penstock/penstock/config/inventory"
	"github.com/penstock/penstock/relay"
	"github.com/penstock/penstock/relay/account"
)

// logins saves who may sign in on the SOAP interface. Usernames that an account
// gave up go first, for another may have taken them. Afterwards the document
// holds the passwords as they are kept.
func (a *apply) logins(ctx context.Context) error {
	for _, want := range a.fresh.Accounts {
		oldSoap := a.before(want).SOAP
		if want.SOAP == nil || oldSoap == nil || oldSoap.Username == want.SOAP.Username {
			continue
		}
		if err := a.write(func() error { return a.Accounts.DeleteLogin(ctx, oldSoap.Username) }); err != nil {
			return err
		}
	}
	for i := range a.fresh.Accounts {
		if err := a.login(ctx, &a.fresh.Accounts[i]); err != nil {
			return err
		}
	}
	return nil
}

func (a *apply) login(ctx context.Context, want *document.Account) error {
	if want.SOAP == nil {
		return nil
	}
	oldSoap := a.before(*want).SOAP
	text, err := password(want.SOAP, oldSoap)
	if err != nil {
		return err
	}
	want.SOAP.Password = text
	login := account.Login{Username: want.SOAP.Username, Account: relay.AccountID(want.ID), Password: text}
	label := "account " + want.Name + ": SOAP username " + login.Username
	return a.put(label, oldSoap != nil, oldSoap != nil && *oldSoap == *want.SOAP, func() error { return a.Accounts.PutLogin(ctx, login) })
}

// password is the stored form of a declared password. One that has not changed stays as it
// was kept, salt and all, so that a verified login stays valid.
func password(want, oldSoap *document.SOAP) (string, error) {
	if account.IsPasswordHash(want.Password) {
		return want.Password, nil
	}
	if oldSoap != nil && account.IsPasswordHash(oldSoap.Password) {
		same, err := account.VerifyPassword(oldSoap.Password, want.Hash())
		if err != nil || same {
			return oldSoap.Password, err
		}
	}
	return account.HashPassword(want.Hash()), nil
}
