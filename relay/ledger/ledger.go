package ledger

import (
	"bytes"
	"cmp"
	"context"
	"crypto/rand"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"slices"
	"strings"
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
	// Claims is the number of times that each token may be claimed; 0: without limit.
	Claims int64 `json:"claims,omitempty"`
	// Expiry is the time for which a token is valid; 0: for good.
	Expiry time.Duration `json:"expiry,omitempty"`
	// PrivateKeyRequired gives each token a private token, which history, claim
	// and validation demand.
	PrivateKeyRequired bool `json:"private_key_required,omitempty"`
	// Metadata reports whether public metadata is kept, Certificates whether certificates are
	// issued.
	Metadata     bool `json:"metadata,omitempty"`
	Certificates bool `json:"certificates,omitempty"`
}

// NewHash makes a ledger's hash.
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
	ExpiresAt time.Time `json:"expires_at,omitzero"` // zero: never
	Limit     int64     `json:"limit,omitempty"`     // of claims; 0: none
	// PrivateID is the TokenID of the private token, if the ledger demands one.
	PrivateID string          `json:"private_id,omitempty"`
	Metadata  json.RawMessage `json:"metadata,omitempty"` // a JSON object
	// Sealed is the private metadata in canonical form, sealed.
	Sealed       []byte          `json:"sealed,omitempty"`
	Certificate  string          `json:"certificate,omitempty"` // PEM
	RedirectURL  string          `json:"redirect_url,omitempty"`
	RedirectMeta json.RawMessage `json:"redirect_meta,omitempty"` // a JSON object

	// What changes.
	Claimed int64 `json:"-"`
	// Appended is the metadata added since, oldest first.
	Appended []json.RawMessage `json:"-"`
}

// TokenID returns the id under which a token is stored and looked up: the lower-case
// hex SHA-256 of its text. It does not reveal the text.
func TokenID(text string) string {
	sum := sha256.Sum256([]byte(text))
	return hex.EncodeToString(sum[:])
}

// newText makes an unguessable text of 26 lower-case letters and digits, 130 bits.
func newText() string { return strings.ToLower(rand.Text()) }

// Valid reports whether the token has not expired.
func (t Token) Valid(now time.Time) bool { return t.ExpiresAt.IsZero() || now.Before(t.ExpiresAt) }

// Remaining is the number of claims that are left; nil: any number.
func (t Token) Remaining() *int64 {
	if t.Limit == 0 {
		return nil
	}
	return new(max(0, t.Limit-t.Claimed))
}

// AllMetadata merges the metadata of the generation with the metadata appended since;
// a later value of a name replaces an earlier one.
func (t Token) AllMetadata() map[string]any {
	metadata := make(map[string]any)
	for _, object := range append([]json.RawMessage{t.Metadata}, t.Appended...) {
		_ = decodeJSON(object, &metadata) // it was canonical when it was saved
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
	Sequence int64           `json:"sequence"` // its place, from 0
	Type     EntryType       `json:"type"`
	At       string          `json:"at"`   // in TimeFormat
	Hash     string          `json:"hash"` // of its leaf, base64
	Data     json.RawMessage `json:"data"`
	Leaf     []byte          `json:"-"` // the bytes that are hashed
}

// leaf is the form of an entry whose bytes are hashed: canonical JSON. Its place
// in the tree is its sequence.
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

// canonical is JSON with the names of objects in order, without blanks, numbers
// as they came, and no character escaped that need not be.
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

// decodeJSON decodes with numbers as they came.
func decodeJSON(b []byte, v any) error {
	d := json.NewDecoder(bytes.NewReader(b))
	d.UseNumber()
	return d.Decode(v)
}

// Place names a ledger: by the account and the ledger's id.
type Place struct {
	Account relay.AccountID
	Ledger  string
}

// String names it for errors.
func (p Place) String() string { return "ledger " + p.Ledger + " of account " + p.Account.String() }

// Deps are the dependencies of a Service; all but Now, Events and Heads are required.
type Deps struct {
	Store *Store
	Vault *vault.Vault
	// Jobs returns saved jobs, Submit takes new ones.
	Jobs   job.Getter
	Submit job.Submitter
	Events outbox.Notifier // nil disables events
	// Heads keeps the last heads outside the store; nil: in memory, so that what
	// was changed while the program did not run is not noticed.
	Heads Heads
	Now   func() time.Time
}

// Options are optional settings; the zero value works.
type Options struct {
	// KeepJobs is the time for which a job is known after its end; 0 means 30 days.
	KeepJobs time.Duration
	// ShowPrivate is the time for which a private token is shown after its generation was
	// requested; 0 means 24 h.
	ShowPrivate time.Duration
	// NotifyHeads sends each new head of a ledger to the account's callback.
	NotifyHeads bool
}

// Service has the use cases of ledgers and tokens.
type Service struct {
	deps    Deps
	opts    Options
	signing locks
	// trusted holds the head of each ledger that was examined last, so that one that
	// has not changed is not examined again.
	trusted table[Place, trust]
	alarms  alarms
}

// New returns a Service.
func New(deps Deps, o Options) (*Service, error) {
	if deps.Store == nil || deps.Vault == nil || deps.Jobs == nil {
		return nil, errors.New("ledger: store, vault and jobs are needed")
	}
	if deps.Now == nil {
		deps.Now = time.Now
	}
	if deps.Heads == nil {
		deps.Heads = HeadsOf(nil)
	}
	o.KeepJobs = cmp.Or(o.KeepJobs, 30*24*time.Hour)
	o.ShowPrivate = cmp.Or(o.ShowPrivate, 24*time.Hour)
	return &Service{deps: deps, opts: o}, nil
}

// Ledgers lists an account's ledgers.
func (s *Service) Ledgers(ctx context.Context, acct relay.AccountID) ([]Ledger, error) {
	return s.deps.Store.Ledgers(ctx, acct)
}

// Ledger returns a ledger by its id or its hash; NotFound if the account has
// none.
func (s *Service) Ledger(ctx context.Context, acct relay.AccountID, name string) (Ledger, error) {
	ledgers, err := s.deps.Store.Ledgers(ctx, acct)
	if err != nil {
		return Ledger{}, err
	}
	i := slices.IndexFunc(ledgers, func(l Ledger) bool { return l.ID == name || l.Hash == name })
	if i < 0 {
		return Ledger{}, relay.Errorf(relay.KindNotFound, "ledger: the account has none of that name")
	}
	return ledgers[i], nil
}

// RenewKeys wraps an account's keys by the newest master key, if an older one
// does.
func (s *Service) RenewKeys(ctx context.Context, acct relay.AccountID) error {
	return s.deps.Vault.Renew(ctx, acct)
}
