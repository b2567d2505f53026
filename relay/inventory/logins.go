package inventory

import (
	"context"

	document "github.com/penstock/penstock/config/inventory"
	"github.com/penstock/penstock/relay"
	"github.com/penstock/penstock/relay/account"
)

// applyLogins saves the logins of the SOAP interface. It first deletes the old usernames of accounts,
// because another account may now have one of them. It replaces the passwords in the document
// with their stored form.
func (a *apply) applyLogins(ctx context.Context) error {
	for _, want := range a.fresh.Accounts {
		oldSOAP := a.declaredAccount(want).SOAP
		if want.SOAP == nil || oldSOAP == nil || oldSOAP.Username == want.SOAP.Username {
			continue
		}
		if err := a.write(func() error { return a.Accounts.DeleteLogin(ctx, oldSOAP.Username) }); err != nil {
			return err
		}
	}
	for i := range a.fresh.Accounts {
		if err := a.applyLogin(ctx, &a.fresh.Accounts[i]); err != nil {
			return err
		}
	}
	return nil
}

func (a *apply) applyLogin(ctx context.Context, want *document.Account) error {
	if want.SOAP == nil {
		return nil
	}
	oldSOAP := a.declaredAccount(*want).SOAP
	password, err := storedPassword(want.SOAP, oldSOAP)
	if err != nil {
		return err
	}
	want.SOAP.Password = password
	login := account.Login{Username: want.SOAP.Username, Account: relay.AccountID(want.ID), Password: password}
	label := "account " + want.Name + ": SOAP username " + login.Username
	return a.put(label, oldSOAP != nil, oldSOAP != nil && *oldSOAP == *want.SOAP, func() error { return a.Accounts.PutLogin(ctx, login) })
}

// storedPassword returns the stored form of a declared password: a hash. An unchanged password keeps
// its hash and salt, so that logins in the cache of verified passwords stay valid.
func storedPassword(want, oldSOAP *document.SOAP) (string, error) {
	if account.IsPasswordHash(want.Password) {
		return want.Password, nil
	}
	if oldSOAP != nil && account.IsPasswordHash(oldSOAP.Password) {
		same, err := account.VerifyPassword(oldSOAP.Password, want.Hash())
		if err != nil || same {
			return oldSOAP.Password, err
		}
	}
	return account.HashPassword(want.Hash()), nil
}
