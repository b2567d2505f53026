package account

import (
	"crypto/sha256"
	"encoding/hex"
	"slices"
	"time"

	"github.com/penstock/penstock/relay"
)

// Scope names a part of the service that a token may use.
type Scope string

// The scopes. A token that is declared without scopes has DefaultScopes; webhook and
// carrier must be declared.
const (
	Messaging Scope = "messaging"
	Cellular  Scope = "cellular"
	IoT       Scope = "iot"
	Ledger    Scope = "ledger"
	Webhook   Scope = "webhook"
	Carrier   Scope = "carrier"
)

// DefaultScopes returns the scopes of a token without scopes.
func DefaultScopes() []Scope { return []Scope{Messaging, Cellular, IoT, Ledger} }

// Account is a customer.
type Account struct {
	ID          relay.AccountID `json:"id"`
	Name        string          `json:"name"`
	Permissions []string        `json:"permissions,omitempty"`
	// WebhookSecrets sign the gateway's requests (Standard Webhooks, whsec_…). There are
	// several during a rotation, newest first.
	WebhookSecrets []string `json:"webhook_secrets,omitempty"`
	CallbackURL    string   `json:"callback_url,omitempty"`
	// Undecryptable is set if the record cannot be decrypted. Then only ID and Name are set.
	Undecryptable bool `json:"-"`
}

// HasPermission reports whether the account has a permission, for example mvno.
func (a Account) HasPermission(permission string) bool {
	return slices.Contains(a.Permissions, permission)
}

// Token is a stored credential.
type Token struct {
	Hash    string          `json:"hash"` // lower-case hex SHA-256 of the token
	Account relay.AccountID `json:"account"`
	Scopes  []Scope         `json:"scopes"`
	// Secret verifies the signatures of senders that sign their requests instead of sending
	// the token.
	Secret string `json:"secret,omitempty"`
	// Undecryptable is set if the secret cannot be decrypted. Then Secret is empty.
	Undecryptable bool `json:"-"`
	// Source names the token in the URL path of senders that sign.
	Source string `json:"source,omitempty"`
	// CreatedAt is the time at which the admin API created the token; zero if an inventory declares
	// the token.
	CreatedAt time.Time `json:"created_at,omitzero"`
}

// DeclaredToken is a token and the name of the document that declares it; empty if there is none.
type DeclaredToken struct {
	Token
	Document string
}

// ID returns the first 12 digits of the hash, which identify the token without revealing it.
func (t Token) ID() string { return t.Hash[:min(12, len(t.Hash))] }

// HasScope reports whether the token has a scope.
func (t Token) HasScope(s Scope) bool { return slices.Contains(t.Scopes, s) }

// HashToken returns the lower-case hex SHA-256 of a token, its key in the store.
func HashToken(token string) string {
	sum := sha256.Sum256([]byte(token))
	return hex.EncodeToString(sum[:])
}
