package ledger

import (
	"context"
	"time"

	"github.com/penstock/penstock/relay/account"
	"github.com/penstock/penstock/relay/ledger/merkle"
	"github.com/penstock/penstock/relay/ledger/vault"
)

// Store keeps ledgers, their tokens and entries.
type Store interface {
	vault.Store

	// Ledgers lists an account's ledgers by id.
	Ledgers(ctx context.Context, acct account.ID) ([]Ledger, error)
	// Secret loads something sealed of an account by its name;
	// relay.KindNotFound if there is none.
	Secret(ctx context.Context, acct account.ID, name string) ([]byte, error)
	// KeepSecret saves it unless there is one, and returns the one there is.
	KeepSecret(ctx context.Context, acct account.ID, name string, sealed []byte) ([]byte, error)
	// SetPrivate keeps a job's sealed private token for a time; Private loads it,
	// relay.KindNotFound afterwards.
	SetPrivate(ctx context.Context, acct account.ID, jobID string, sealed []byte, keep time.Duration) error
	Private(ctx context.Context, acct account.ID, jobID string) ([]byte, error)

	// SetHome notes whose a token is; Home tells, relay.KindNotFound if nobody's.
	SetHome(ctx context.Context, tokenID string, acct account.ID) error
	Home(ctx context.Context, tokenID string) (account.ID, error)
	// Token loads a token; relay.KindNotFound if the account has none of the id.
	Token(ctx context.Context, acct account.ID, tokenID string) (Token, error)

	// Generate saves a new token and its entry in one step. A token that exists
	// is left alone.
	Generate(ctx context.Context, acct account.ID, t Token, entry []byte) error
	// Claim counts one claim of a token and adds its entry, in one step, unless
	// the token is used up or expired. For a job that has claimed the token it
	// answers what it did then. The entry is before + the claim's number + after.
	Claim(ctx context.Context, acct account.ID, c Claim) (ClaimResult, error)
	// Annotate appends metadata to a token and adds the entry, in one step. For a
	// job that has done so it does nothing.
	Annotate(ctx context.Context, acct account.ID, a Annotation) error

	// Log tells how a ledger's log stands.
	Log(ctx context.Context, acct account.ID, ledgerID string) (Log, error)
	// Entries loads entries by their sequence; nil for one that is not there.
	Entries(ctx context.Context, acct account.ID, ledgerID string, sequences []int64) ([][]byte, error)
	// EntriesOf lists the sequences of a token's entries, in order.
	EntriesOf(ctx context.Context, acct account.ID, tokenID string) ([]int64, error)
	// Hashes loads stored hashes by their index; one that is not there is zero.
	Hashes(ctx context.Context, acct account.ID, ledgerID string, indexes []int64) ([]merkle.Hash, error)
	// Extend adds the hashes of entries from was on, and a head that covers them,
	// in one step; false if the log had another size by then.
	Extend(ctx context.Context, acct account.ID, ledgerID string, was int64, next Log, hashes []merkle.Hash) (bool, error)
}

// Log is how a ledger's log stands.
type Log struct {
	Entries int64 // how many there are
	Sealed  int64 // how many of these the head covers
	Head    string
}

// Claim is one claim of one token by one job.
type Claim struct {
	Token         Token // only what never changes is looked at
	JobID         string
	Now           time.Time
	Before, After string
}

// ClaimResult is what became of a claim.
type ClaimResult string

// What may become of a claim.
const (
	ClaimCounted   ClaimResult = "claimed"
	ClaimExhausted ClaimResult = "exhausted"
	ClaimExpired   ClaimResult = "expired"
)

// Annotation is metadata that one job appends to one token.
type Annotation struct {
	Token    Token // only what never changes is looked at
	JobID    string
	Metadata []byte // a JSON object
	Entry    []byte
}
