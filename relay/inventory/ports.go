package inventory

import (
	"context"

	"github.com/penstock/penstock/relay"
	"github.com/penstock/penstock/relay/account"
	"github.com/penstock/penstock/relay/inbound"
	"github.com/penstock/penstock/relay/lookup"
	"github.com/penstock/penstock/relay/rule"
)

// Accounts stores accounts and the inventory; account.Store implements it. Tests change
// records between a read and the save that follows.
type Accounts interface {
	Tokens(ctx context.Context) ([]account.Token, error)
	AddToken(ctx context.Context, t account.Token) error
	PutTokens(ctx context.Context, tokens []account.Token) error
	DeleteToken(ctx context.Context, t account.Token) error
	PutLogin(ctx context.Context, l account.Login) error
	DeleteLogin(ctx context.Context, username string) error
	Account(ctx context.Context, id relay.AccountID) (account.Account, error)
	AccountByName(ctx context.Context, name string) (account.Account, error)
	Accounts(ctx context.Context) ([]account.Account, error)
	PutAccounts(ctx context.Context, all, read []account.Account) ([]relay.AccountID, error)
	DeleteAccount(ctx context.Context, id relay.AccountID) error
	Inventory(ctx context.Context) ([]byte, error)
	DeclaredSIMs(ctx context.Context, which account.WhichSIMs) ([]account.DeclaredSIM, error)
	PutInventory(ctx context.Context, was, document []byte, sims account.SIMChanges) error
}

// Relays keeps relays.
type Relays interface {
	List(ctx context.Context, acct relay.AccountID, k inbound.Kind) ([]inbound.Relay, error)
	Get(ctx context.Context, acct relay.AccountID, k inbound.Kind, id string) (inbound.Relay, error)
	// Declare saves a relay, or, of one that exists, what merge returns for it.
	Declare(ctx context.Context, r inbound.Relay, merge func(stored inbound.Relay) inbound.Relay) error
	Delete(ctx context.Context, acct relay.AccountID, k inbound.Kind, id string) error
}

// Rules keeps rules.
type Rules interface {
	Rule(ctx context.Context, acct relay.AccountID, id string) (rule.Rule, error)
	Rules(ctx context.Context, acct relay.AccountID) ([]rule.Rule, error)
	// Declare saves a rule under its id, unless keep returns true for the rule that is
	// stored under it, nil for none.
	Declare(ctx context.Context, acct relay.AccountID, r rule.Rule, keep func(stored *rule.Rule) bool) error
	Delete(ctx context.Context, acct relay.AccountID, id string) error
}

// Networks keeps the table of the simulated lookup.
type Networks interface {
	PutNetwork(ctx context.Context, n lookup.Network) error
	DeleteNetwork(ctx context.Context, prefix string) error
}
