package ledger

import (
	"context"
	"time"

	"github.com/penstock/penstock/relay"
	"github.com/penstock/penstock/relay/ledger/merkle"
	"github.com/penstock/penstock/relay/ledger/vault"
)

// Store keeps ledgers, their tokens and entries.
type Store interface {
	vault.Store

	// Ledgers lists an account's ledgers by id.
	Ledgers(ctx context.Context, acct relay.AccountID) ([]Ledger, error)
	// Secret loads something sealed of an account by its name;
	// relay.KindNotFound if there is none.
	Secret(ctx context.Context, acct relay.AccountID, name string) ([]byte, error)
	// KeepSecret saves it unless there is one, and returns the one there is.
	KeepSecret(ctx context.Context, acct relay.AccountID, name string, sealed []byte) ([]byte, error)
	// SetPrivate keeps a job's sealed private token for a time; Private loads it,
	// relay.KindNotFound afterwards.
	SetPrivate(ctx context.Context, acct relay.AccountID, jobID string, sealed []byte, keep time.Duration) error
	Private(ctx context.Context, acct relay.AccountID, jobID string) ([]byte, error)

	// SetHome saves the account of a token; Home returns it, relay.KindNotFound if none.
	SetHome(ctx context.Context, tokenID string, acct relay.AccountID) error
	Home(ctx context.Context, tokenID string) (relay.AccountID, error)
	// Token loads a token without its appended metadata; relay.KindNotFound if the
	// account has none of the id.
	Token(ctx context.Context, acct relay.AccountID, tokenID string) (Token, error)
	// Annotations lists the entries that append metadata to a token, in order.
	Annotations(ctx context.Context, acct relay.AccountID, tokenID string) ([]Row, error)

	// Standing loads a token as Token does, with the entries that say how it stands,
	// of the same moment.
	Standing(ctx context.Context, acct relay.AccountID, tokenID string) (Standing, error)
	// Standings lists the tokens of an account after one, by id, as Standing does.
	Standings(ctx context.Context, acct relay.AccountID, after string, limit int) ([]Standing, error)

	// Generate, Claim and Annotate add entries with the MAC of the Authenticator. They
	// return its error, and change nothing, if the entries of a token do not follow from
	// one another.

	// Generate saves a new token and its entry in one step. A token that exists
	// is left alone.
	Generate(ctx context.Context, acct relay.AccountID, g Generation) error
	// Claim counts one claim of each token of a job and adds their entries, in one
	// step, unless one of them is used up or expired: then it counts none. For a
	// job that has claimed a token it returns the result of that time. The entry is
	// before + the claim's number + after.
	Claim(ctx context.Context, acct relay.AccountID, all []Claim) ([]ClaimResult, error)
	// Annotate appends metadata to a token and adds the entry, in one step. For a
	// job that has done so it does nothing.
	Annotate(ctx context.Context, acct relay.AccountID, a Annotation) error

	// Log returns the state of a ledger's log.
	Log(ctx context.Context, acct relay.AccountID, ledgerID string) (Log, error)
	// Logs returns the states of the logs of all accounts.
	Logs(ctx context.Context) ([]LogOf, error)
	// Rows loads the entries from one sequence up to, not including, another, in
	// their order; those that are not there are left out.
	Rows(ctx context.Context, acct relay.AccountID, ledgerID string, from, to int64) ([]Row, error)
	// Entries loads entries by their sequence; nil for one that is not there.
	Entries(ctx context.Context, acct relay.AccountID, ledgerID string, sequences []int64) ([][]byte, error)
	// EntriesOf lists the sequences of a token's entries, in order.
	EntriesOf(ctx context.Context, acct relay.AccountID, tokenID string) ([]int64, error)
	// Hashes loads stored hashes by their index; one that is not there is zero.
	Hashes(ctx context.Context, acct relay.AccountID, ledgerID string, indexes []int64) ([]merkle.Hash, error)
	// Extend adds the hashes of entries from was on, and a head that covers them,
	// in one step; false if the log had another size by then.
	Extend(ctx context.Context, acct relay.AccountID, ledgerID string, was int64, next Log, hashes []merkle.Hash) (bool, error)
}

// Log is the state of a ledger's log.
type Log struct {
	Entries int64 // number of entries
	Signed  int64 // number of entries that the head covers
	Head    string
	// SealedHead is the sealed head in base64, empty if there is none.
	SealedHead string
}

// LogOf is the log of a ledger of an account.
type LogOf struct {
	Place
	Hash     string // the ledger's
	Declared bool   // whether the account has such a ledger
	Log      Log
}

// Row is a stored entry: its bytes, the columns that it is found by, and its MAC, which
// covers all of them. Each entry of a token also covers the one before it.
type Row struct {
	Sequence int64
	Token    string // id
	Job      string // empty: the token's generation
	Metadata string // appended to the token; empty: none
	Position int64  // among the entries of its token, from 0
	Claims   int64  // number of the token's claims up to and with this entry
	Bytes    []byte // nil: there is no such entry
	MAC      []byte
	// Previous is the MAC of the token's entry before this one; nil: there is none.
	Previous []byte
	// Orphan reports that the token is not stored.
	Orphan bool
}

// Chain is what is stored of a token's entries.
type Chain struct {
	Claimed int64 // number of claims according to the token
	Entries int64 // number of entries
	Last    Row   // the zero Row if there are none
}

// Standing is a token with the entries that determine its state.
type Standing struct {
	ID    string // under which it is found
	Token Token
	Chain Chain
	// Generation is the entry of the token's generation.
	Generation Row
	Home       relay.AccountID // the account of the token's link; 0: none
}

// Place names a ledger: by the account and the ledger's id.
type Place struct {
	Account relay.AccountID
	Ledger  string
}

// String names it for errors.
func (p Place) String() string { return "ledger " + p.Ledger + " of account " + p.Account.String() }

// Heads stores the last signed head of each ledger, out of reach of an attacker who
// can write to the store. It is safe for concurrent use.
type Heads interface {
	// Last returns the head that was kept last; empty: none.
	Last(p Place) string
	// Keep keeps a head; it is kept for good when Keep returns nil. An empty one
	// forgets the ledger.
	Keep(p Place, signed string) error
	// All returns the last head of every ledger.
	All() map[Place]string
}

// Generation is a new token and the entry that says so.
type Generation struct {
	Token         Token
	Entry         []byte
	Authenticator Authenticator
}

// Claim is one claim of one token by one job.
type Claim struct {
	Token         Token // only what never changes is looked at
	JobID         string
	Now           time.Time
	Before, After string
	Authenticator Authenticator
}

// ClaimResult is the result of a claim.
type ClaimResult string

// What may become of a claim.
const (
	ClaimCounted   ClaimResult = "claimed"
	ClaimExhausted ClaimResult = "exhausted"
	ClaimExpired   ClaimResult = "expired"
	ClaimWithheld  ClaimResult = "withheld" // another of the job's was refused
)

// Annotation is metadata that one job appends to one token.
type Annotation struct {
	Token    Token // only what never changes is looked at
	JobID    string
	Metadata []byte // a JSON object
	Entry    []byte

	Authenticator Authenticator
}
