package ledger

import (
	"bytes"
	"crypto/rand"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"strings"
	"time"

	"github.com/penstock/penstock/relay"
)

// TimeFormat is how times are written in answers and entries, in UTC.
const TimeFormat = time.DateTime

// Ledger is a ledger as the inventory declares it.
type Ledger struct {
	ID          string `json:"id"`
	Name        string `json:"name"`
	Description string `json:"description,omitempty"`
	// Hash is unique to the ledger and never changes: 64 hex digits.
	Hash string `json:"-"`
	// Claims is how often each token may be claimed; 0: without limit.
	Claims int64 `json:"claims,omitempty"`
	// Expiry is how long a token is valid; 0: for good.
	Expiry time.Duration `json:"expiry,omitempty"`
	// PrivateKeyRequired gives each token a private token, which history, claim
	// and validation demand.
	PrivateKeyRequired bool `json:"private_key_required,omitempty"`
	// Metadata says whether public metadata is kept, Certificates whether
	// certificates are issued.
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

// Remaining is how many claims are left; nil: any number.
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

// newLeaf makes the bytes of an entry.
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
