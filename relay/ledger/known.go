package ledger

import (
	"cmp"
	"context"
	"crypto/subtle"

	"github.com/penstock/penstock/relay"
)

// InvalidToken is the text for every token that is refused: one that never was,
// one of another account, one without its private token.
const InvalidToken = "The given token was invalid."

// errInvalidToken refuses a token.
func errInvalidToken() error {
	return &relay.Error{Kind: relay.KindInvalid, Message: InvalidToken, Fields: map[string][]string{"token": {InvalidToken}}}
}

// Credential names a token and shows that one may use it.
type Credential struct {
	Token   string
	Private string // where the ledger demands a private token
}

// known loads the token that a credential opens and checks that it is as the ledger
// says. Whatever is wrong with the credential, the same is done and the same is
// answered.
func (s *Service) known(ctx context.Context, acct relay.AccountID, c Credential) (Token, error) {
	st, err := s.load(ctx, acct, c.Token)
	if err != nil && relay.KindOf(err) != relay.KindNotFound {
		return Token{}, err
	}
	privateID := TokenID(c.Private)
	want := cmp.Or(st.Token.PrivateID, TokenID(""))
	fits := subtle.ConstantTimeCompare([]byte(privateID), []byte(want)) == 1 || st.Token.PrivateID == ""
	if err != nil || !fits {
		return Token{}, errInvalidToken()
	}
	return st.Token, s.checkStanding(ctx, acct, st)
}

// load finds a token by its text; relay.KindNotFound for a text that is no token's.
func (s *Service) load(ctx context.Context, acct relay.AccountID, text string) (Standing, error) {
	if text == "" || len(text) > maxText {
		return Standing{}, relay.Errorf(relay.KindNotFound, "token: not one of ours")
	}
	return s.deps.Store.Standing(ctx, acct, TokenID(text))
}

// The most a caller may give.
const (
	maxText     = 200
	maxTokens   = 100      // in one request
	maxMetadata = 64 << 10 // bytes of a JSON object
	maxURL      = 2048
)

// several lists the tokens that an operation is about, each once: token first,
// then tokens.
func several(token string, tokens []string) ([]string, error) {
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
