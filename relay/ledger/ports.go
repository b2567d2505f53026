package ledger

import (
	"time"

	"github.com/penstock/penstock/relay"
)

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
