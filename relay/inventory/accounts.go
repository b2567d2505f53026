package inventory

import (
	"context"
	"fmt"
	"strconv"
	"strings"

	document "github.com/penstock/penstock/config/inventory"
	"github.com/penstock/penstock/relay"
	"github.com/penstock/penstock/relay/account"
	"github.com/penstock/penstock/relay/credit"
	"github.com/penstock/penstock/relay/inbound"
)

// checkAccount returns an Invalid error, by field, for settings that a document must not
// have either.
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
	if _, err := strconv.ParseUint(a.Name, 10, 64); err == nil {
		return a, relay.Invalid("name", "The name must not be a number, which would be read as an account's id.")
	}
	if credits > credit.MaxAmount {
		return a, relay.Invalid("credit", fmt.Sprintf("The credit must be at most %d.", credit.MaxAmount))
	}
	_, err := s.Accounts.AccountByName(ctx, a.Name)
	if err == nil {
		return a, relay.Errorf(relay.KindConflict, "There is an account named %s already.", a.Name)
	}
	if err := ignoreMissing(err); err != nil {
		return a, err
	}
	ids, err := s.Accounts.PutAccounts(ctx, []account.Account{a}, nil)
	if err != nil {
		return a, err
	}
	a.ID = ids[0]
	return a, s.Credit.Open(ctx, a.ID, credits, s.Now())
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

// Owners returns which documents accounts belong to.
func (s *Service) Owners(ctx context.Context) (document.Owners, error) {
	st, err := s.standing(ctx)
	return st.set.Owners(), err
}

// RemoveAccount deletes an account with its tokens, logins, relays, rules, decoders,
// locations, trunks and ledgers, and returns it as it was. It returns an Invalid error if
// a document declares the account, or if the account holds what would be lost.
func (s *Service) RemoveAccount(ctx context.Context, id relay.AccountID) (account.Account, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	a, err := s.Accounts.Account(ctx, id)
	if err != nil {
		return a, err
	}
	// 1. Refuse what a document would bring back, and what holds anything.
	owners, err := s.Owners(ctx)
	if err != nil {
		return a, err
	}
	if owner := owners.Of(document.Account{ID: int64(id), Name: a.Name}); owner != "" {
		return a, relay.Invalid("account", "The inventory document "+owner+" declares the account: apply the document without it and with prune first.")
	}
	holdings, err := s.Holdings(ctx, id)
	if err != nil {
		return a, err
	}
	if len(holdings) > 0 {
		return a, relay.Invalid("account", "The account holds "+strings.Join(holdings, ", ")+".")
	}
	// 2. Delete what lets traffic in, then what decides about it.
	tokens, err := s.Accounts.Tokens(ctx)
	if err != nil {
		return a, err
	}
	for _, t := range tokens {
		if t.Account == id {
			if err := s.Accounts.DeleteToken(ctx, t); err != nil {
				return a, err
			}
		}
	}
	for _, kind := range []inbound.Kind{inbound.Geographic, inbound.VirtualNumber} {
		relays, err := s.Relays.List(ctx, id, kind)
		if err != nil {
			return a, err
		}
		for _, r := range relays {
			if err := s.Relays.Delete(ctx, id, kind, r.ID); err != nil {
				return a, err
			}
		}
	}
	rules, err := s.Rules.Rules(ctx, id)
	if err != nil {
		return a, err
	}
	for _, r := range rules {
		if err := s.Rules.Delete(ctx, id, r.ID); err != nil {
			return a, err
		}
	}
	if err := s.removeFleet(ctx, id); err != nil {
		return a, err
	}
	// 3. Delete the account with its logins.
	return a, s.Accounts.DeleteAccount(ctx, id)
}

// removeFleet deletes the decoders, locations, trunks and ledgers of an account.
func (s *Service) removeFleet(ctx context.Context, id relay.AccountID) error {
	decoders, err := s.Devices.Decoders(ctx, id)
	if err != nil {
		return err
	}
	for _, d := range decoders {
		if err := s.Devices.DeleteDecoder(ctx, id, d.ID); err != nil {
			return err
		}
	}
	locations, err := s.Devices.Locations(ctx, id)
	if err != nil {
		return err
	}
	for _, l := range locations {
		if err := s.Devices.DeleteLocation(ctx, id, l.ID); err != nil {
			return err
		}
	}
	ledgers, err := s.Ledgers.Ledgers(ctx, id)
	if err != nil {
		return err
	}
	for _, l := range ledgers {
		if err := s.Ledgers.Delete(ctx, id, l.ID); err != nil {
			return err
		}
	}
	return s.Trunks.PutTrunks(ctx, id, nil)
}
