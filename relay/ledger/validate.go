package ledger

import (
	"cmp"
	"context"
	"crypto/sha256"
	"crypto/subtle"
	"encoding/json"
	"net/url"
	"time"

	"github.com/penstock/penstock/relay"
	"github.com/penstock/penstock/relay/db"
)

// Validation has the arguments of Service.Validate.
type Validation struct {
	Token   string
	Tokens  []string
	Private string
	// PrivateMetadata, unless nil, must equal the private metadata of the token's generation.
	PrivateMetadata json.RawMessage
}

// Validity is the result of the validation of one token.
type Validity struct {
	Text  string
	Valid bool
	Known bool
	Token Token // only if Known
}

// RemainingSeconds returns the time until a token expires, in whole seconds; nil if it does not
// expire.
func (v Validity) RemainingSeconds(now time.Time) *int64 {
	if v.Token.ExpiresAt.IsZero() {
		return nil
	}
	return new(max(0, int64(v.Token.ExpiresAt.Sub(now)/time.Second)))
}

// Validate reports for each token whether it is valid. A token is valid until it expires, even
// if it has no claims left. In a list of tokens, a token that the account does not have, or whose
// private token is wrong, is not valid; for a single token, Validate returns relay.KindInvalid.
func (s *Service) Validate(ctx context.Context, acct relay.AccountID, validation Validation) ([]Validity, error) {
	texts, err := uniqueTokens(validation.Token, validation.Tokens)
	if err != nil {
		return nil, err
	}
	p := relay.Problems{}
	checkObject(p, "private_metadata", validation.PrivateMetadata)
	if err := p.Err(); err != nil {
		return nil, err
	}
	results := make([]Validity, len(texts))
	for i, text := range texts {
		t, err := s.checkCredential(ctx, acct, Credential{Token: text, Private: validation.Private})
		results[i].Text = text
		if relay.KindOf(err) == relay.KindInvalid && len(validation.Tokens) > 0 {
			continue
		}
		if err != nil {
			return nil, err
		}
		same, err := s.sameMetadata(ctx, acct, t, validation.PrivateMetadata)
		if err != nil {
			return nil, err
		}
		results[i].Known, results[i].Token = true, t
		results[i].Valid = t.Valid(s.deps.Now()) && same
	}
	return results, nil
}

// Now returns the current time of the clock in Deps.
func (s *Service) Now() time.Time { return s.deps.Now() }

// sameMetadata reports whether metadata equals the private metadata of a token. The comparison
// takes constant time.
func (s *Service) sameMetadata(ctx context.Context, acct relay.AccountID, t Token, metadata json.RawMessage) (bool, error) {
	if metadata == nil {
		return true, nil
	}
	plain, err := canonical(metadata)
	if err != nil {
		return false, err
	}
	var stored []byte
	if t.Sealed != nil {
		if stored, err = s.deps.Vault.Open(ctx, acct, t.Sealed, "private metadata of "+t.ID); err != nil {
			return false, err
		}
	}
	a, b := sha256.Sum256(plain), sha256.Sum256(stored)
	return subtle.ConstantTimeCompare(a[:], b[:]) == 1, nil
}

// RedirectTarget returns the target of a token's link: its redirect URL with the members of redirect_meta
// as query parameters. Values other than strings are JSON.
//
// It returns the same relay.KindNotFound error if the token is not valid, the private token is wrong,
// or the token does not have a redirect URL.
func (s *Service) RedirectTarget(ctx context.Context, c Credential) (string, error) {
	acct, err := s.deps.Store.AccountOf(ctx, TokenID(c.Token))
	if err != nil && relay.KindOf(err) != relay.KindNotFound {
		return "", err
	}
	// An unknown token is looked up too, in account 0, so that the response time does
	// not reveal whether the token exists.
	t, err := s.checkCredential(ctx, acct, c)
	if relay.KindOf(err) == relay.KindInvalid || err == nil && (!t.Valid(s.deps.Now()) || t.RedirectURL == "") {
		return "", relay.Errorf(relay.KindNotFound, "token: it has no link that can be followed")
	}
	if err != nil {
		return "", err
	}
	u, err := url.Parse(t.RedirectURL)
	if err != nil || t.RedirectMeta == nil {
		return t.RedirectURL, err
	}
	var members map[string]json.RawMessage
	if err := json.Unmarshal(t.RedirectMeta, &members); err != nil {
		return "", err
	}
	q := u.Query()
	for name, value := range members {
		var text string
		if json.Unmarshal(value, &text) != nil {
			text = string(value)
		}
		q.Set(name, text)
	}
	u.RawQuery = q.Encode()
	return u.String(), nil
}

// InvalidToken is the error text for an unknown token, a token of another account, and a wrong
// private token.
const InvalidToken = "The given token was invalid."

func errInvalidToken() error {
	return &relay.Error{Kind: relay.KindInvalid, Message: InvalidToken, Fields: map[string][]string{"token": {InvalidToken}}}
}

// Credential is a token with its private token.
type Credential struct {
	Token   string
	Private string // required if the token has a private token
}

// checkCredential loads the token of a credential and checks the token against its entries. The work and
// the error are the same for all invalid credentials.
func (s *Service) checkCredential(ctx context.Context, acct relay.AccountID, c Credential) (Token, error) {
	st, err := Standing{}, db.NotFound("token")
	if c.Token != "" && len(c.Token) <= maxText {
		st, err = s.deps.Store.Standing(ctx, acct, TokenID(c.Token))
	}
	if err != nil && relay.KindOf(err) != relay.KindNotFound {
		return Token{}, err
	}
	privateID := TokenID(c.Private)
	want := cmp.Or(st.Token.PrivateID, TokenID(""))
	matches := subtle.ConstantTimeCompare([]byte(privateID), []byte(want)) == 1 || st.Token.PrivateID == ""
	if err != nil || !matches {
		return Token{}, errInvalidToken()
	}
	return st.Token, s.checkStanding(ctx, acct, st)
}

// The limits of requests.
const (
	maxText     = 200      // bytes of a token
	maxTokens   = 100      // in one request
	maxMetadata = 64 << 10 // bytes of a JSON object
	maxURL      = 2048     // bytes
)

// uniqueTokens returns token and tokens without empty and repeated texts.
func uniqueTokens(token string, tokens []string) ([]string, error) {
	var texts []string
	seen := make(map[string]bool)
	for _, t := range append([]string{token}, tokens...) {
		if t != "" && !seen[t] {
			seen[t] = true
			texts = append(texts, t)
		}
	}
	switch {
	case len(texts) == 0:
		return nil, relay.Invalid("token", "The token field is required.")
	case len(texts) > maxTokens:
		return nil, relay.Invalid("tokens", "The tokens may not have more than 100 items.")
	}
	return texts, nil
}
