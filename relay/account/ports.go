package account

import (
	"context"

	"github.com/penstock/penstock/relay"
)

// Store keeps accounts, tokens and the inventory they were declared in.
type Store interface {
	// Token loads a token by the hash of its text; relay.KindNotFound if there
	// is none.
	Token(ctx context.Context, hash string) (Token, error)
	TokenBySource(ctx context.Context, source string) (Token, error)
	// Tokens lists every token by its hash.
	Tokens(ctx context.Context) ([]Token, error)
	// AddToken saves a token; relay.KindConflict if another one has its source.
	AddToken(ctx context.Context, t Token) error
	PutTokens(ctx context.Context, tokens []Token) error
	DeleteToken(ctx context.Context, t Token) error
	// Changes calls back with all tokens whenever one may have changed, until ctx is done.
	Changes(ctx context.Context, changed func([]Token))

	// Login loads the login of a username; relay.KindNotFound if there is none.
	Login(ctx context.Context, username string) (Login, error)
	PutLogin(ctx context.Context, l Login) error
	DeleteLogin(ctx context.Context, username string) error

	Account(ctx context.Context, id relay.AccountID) (Account, error)
	AccountByName(ctx context.Context, name string) (Account, error)
	Accounts(ctx context.Context) ([]Account, error)
	// PutAccounts saves accounts and returns their ids, in their order; one is
	// assigned when it is 0 and the name is new. Account i replaces read[i], as it was
	// loaded before; a callback URL that was set over REST since then is kept.
	PutAccounts(ctx context.Context, all, read []Account) ([]relay.AccountID, error)

	// Inventory returns the merged inventory without its SIMs, nil if there is none.
	Inventory(ctx context.Context) ([]byte, error)
	// DeclaredSIMs returns the SIMs of the inventory that meet one of the conditions,
	// by ICCID and account.
	DeclaredSIMs(ctx context.Context, which WhichSIMs) ([]DeclaredSIM, error)
	// PutInventory saves it together with changes of its SIMs; relay.KindConflict if
	// the saved document has changed since was was read.
	PutInventory(ctx context.Context, was, document []byte, sims SIMChanges) error
}

// DeclaredToken is a token, and the document that declares it: empty for none.
type DeclaredToken struct {
	Token
	Document string
}

// DeclaredSIM is a SIM as the inventory keeps it, once for an account.
type DeclaredSIM struct {
	ICCID, IMSI, MSISDN string
	Document, Account   string // that declare it, by name
	Declared            string // how, as JSON
	Unopened            bool   // Declared does not open, and is left out
}

// WhichSIMs selects SIMs of the inventory: those with one of the values, all of some
// documents or accounts, or all.
type WhichSIMs struct {
	ICCIDs, IMSIs, MSISDNs []string
	Documents, Accounts    []string
	All                    bool
}

// SIMChanges are changes of the SIMs of the inventory.
type SIMChanges struct {
	Put    []DeclaredSIM
	Delete []DeclaredSIM // by ICCID and account
}
