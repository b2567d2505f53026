package ledger

import (
	"bytes"
	"context"
	"crypto/rand"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/penstock/penstock/relay"
	"github.com/penstock/penstock/relay/job"
	"github.com/penstock/penstock/relay/ledger/vault"
	"github.com/penstock/penstock/relay/outbox"
)

// TimeFormat is the format of times in answers and entries, in UTC.
const TimeFormat = time.DateTime

// Ledger is a ledger as the inventory declares it.
type Ledger struct {
	ID          string `json:"id"`
	Name        string `json:"name"`
	Description string `json:"description,omitempty"`
	// Hash is unique to the ledger and never changes: 64 hex digits.
	Hash string `json:"-"`
	// Claims is the number of times that each token may be claimed; 0 means unlimited.
	Claims int64 `json:"claims,omitempty"`
	// Expiry is the time for which a token is valid; 0 means permanently.
	Expiry time.Duration `json:"expiry,omitempty"`
	// PrivateKeyRequired gives each token a private token, which history, claim and validation
	// require.
	PrivateKeyRequired bool `json:"private_key_required,omitempty"`
	Metadata           bool `json:"metadata,omitempty"`     // public metadata is stored
	Certificates       bool `json:"certificates,omitempty"` // certificates are issued
}

// NewHash returns a random hash for a new ledger.
func NewHash() string {
	b := make([]byte, 32)
	_, _ = rand.Read(b) // never fails, see crypto/rand
	return hex.EncodeToString(b)
}

// Token is a token on a ledger.
type Token struct {
	ID        string    `json:"id"` // see TokenID
	Ledger    string    `json:"ledger"`
	CreatedAt time.Time `json:"created_at"`
	ExpiresAt time.Time `json:"expires_at,omitzero"` // zero means never
	Limit     int64     `json:"limit,omitempty"`     // number of claims; 0 means unlimited
	// PrivateID is the TokenID of the private token, if the ledger requires private tokens.
	PrivateID string          `json:"private_id,omitempty"`
	Metadata  json.RawMessage `json:"metadata,omitempty"` // a JSON object
	// Sealed is the sealed private metadata, in canonical JSON.
	Sealed       []byte          `json:"sealed,omitempty"`
	Certificate  string          `json:"certificate,omitempty"` // PEM
	RedirectURL  string          `json:"redirect_url,omitempty"`
	RedirectMeta json.RawMessage `json:"redirect_meta,omitempty"` // a JSON object

	// Claimed and Appended change after the generation.
	Claimed  int64             `json:"-"` // number of claims
	Appended []json.RawMessage `json:"-"` // metadata, oldest first
}

// TokenID returns the id of a token: the lower-case hex SHA-256 of its text. The id does not
// reveal the text.
func TokenID(text string) string {
	sum := sha256.Sum256([]byte(text))
	return hex.EncodeToString(sum[:])
}

// newText returns a random token: 26 lower-case letters and digits, 130 bits.
func newText() string { return strings.ToLower(rand.Text()) }

// Valid reports whether the token has not expired.
func (t Token) Valid(now time.Time) bool { return t.ExpiresAt.IsZero() || now.Before(t.ExpiresAt) }

// Remaining returns the number of remaining claims; nil means unlimited.
func (t Token) Remaining() *int64 {
	if t.Limit == 0 {
		return nil
	}
	return new(max(0, t.Limit-t.Claimed))
}

// AllMetadata merges the metadata of the generation and the appended metadata. A later value
// of a name replaces an earlier one.
func (t Token) AllMetadata() map[string]any {
	metadata := make(map[string]any)
	for _, object := range append([]json.RawMessage{t.Metadata}, t.Appended...) {
		_ = decodeJSON(object, &metadata) // saved metadata is canonical JSON
	}
	return metadata
}

// EntryType is the type of an entry.
type EntryType string

// The types of entries.
const (
	Generated EntryType = "generated"
	Claimed   EntryType = "claimed"
	Annotated EntryType = "metadata"
)

// Entry is one event of a ledger.
type Entry struct {
	Sequence int64           `json:"sequence"` // number in the ledger, from 0
	Type     EntryType       `json:"type"`
	At       string          `json:"at"`   // in TimeFormat
	Hash     string          `json:"hash"` // leaf hash in base64
	Data     json.RawMessage `json:"data"`
	Leaf     []byte          `json:"-"` // the hashed bytes
}

// leaf is an entry in the form that is hashed, as canonical JSON.
type leaf struct {
	At   string          `json:"at"`
	Data json.RawMessage `json:"data"`
	Type EntryType       `json:"type"`
}

func newLeaf(kind EntryType, t time.Time, data any) ([]byte, error) {
	b, err := canonical(data)
	if err != nil {
		return nil, err
	}
	return canonical(leaf{At: t.UTC().Format(TimeFormat), Data: b, Type: kind})
}

// canonical returns the JSON of a value with sorted names, without blanks, with unchanged
// numbers, and with escapes only where JSON requires them.
func canonical(v any) ([]byte, error) {
	b, err := json.Marshal(v)
	if err != nil {
		return nil, err
	}
	var plain any
	if err := decodeJSON(b, &plain); err != nil {
		return nil, err
	}
	return relay.EncodeJSON(plain)
}

// decodeJSON decodes JSON; numbers become json.Number.
func decodeJSON(b []byte, v any) error {
	d := json.NewDecoder(bytes.NewReader(b))
	d.UseNumber()
	return d.Decode(v)
}

// Place identifies a ledger by its account and its id.
type Place struct {
	Account relay.AccountID
	Ledger  string
}

// String names the ledger for errors.
func (p Place) String() string { return "ledger " + p.Ledger + " of account " + p.Account.String() }

// Deps are the dependencies of a Service; Now, Events and NotifyHeads are optional.
type Deps struct {
	Store  *Store
	Vault  *vault.Vault
	Jobs   job.Getter
	Submit job.Submitter
	Events outbox.Notifier // nil disables events
	Heads  Heads
	// NotifyHeads sends each new head of a ledger to the account's callback URL.
	NotifyHeads bool
	Now         func() time.Time
}

const (
	// jobRetention is the time for which a job is kept after its end.
	jobRetention = 30 * 24 * time.Hour
	// privateRetention is the time for which a private token can be read after its generation was
	// requested.
	privateRetention = 24 * time.Hour
)

// Service has the operations on ledgers and tokens.
type Service struct {
	deps    Deps
	signing sync.Map // Place to *sync.Mutex, see lockOf
	// trusted has the last examined head of each ledger. An unchanged head is not examined again.
	trusted table[Place, examined]
	alarms  alarms
}

// New returns a Service.
func New(deps Deps) *Service {
	if deps.Now == nil {
		deps.Now = time.Now
	}
	return &Service{deps: deps}
}

// Ledgers lists an account's ledgers.
func (s *Service) Ledgers(ctx context.Context, acct relay.AccountID) ([]Ledger, error) {
	return s.deps.Store.Ledgers(ctx, acct)
}

// Ledger returns a ledger by its id or its hash; relay.KindNotFound if the account does not
// have the ledger.
func (s *Service) Ledger(ctx context.Context, acct relay.AccountID, idOrHash string) (Ledger, error) {
	ledgers, err := s.deps.Store.Ledgers(ctx, acct)
	if err != nil {
		return Ledger{}, err
	}
	i := slices.IndexFunc(ledgers, func(l Ledger) bool { return l.ID == idOrHash || l.Hash == idOrHash })
	if i < 0 {
		return Ledger{}, relay.Errorf(relay.KindNotFound, "ledger %q not found", idOrHash)
	}
	return ledgers[i], nil
}
