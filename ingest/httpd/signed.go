package httpd

import (
	"crypto/sha256"
	"errors"
	"log/slog"
	"sync/atomic"

	"github.com/gofiber/fiber/v2"

	"github.com/penstock/penstock/relay/account"
)

// ErrUnsigned is what a Signature's Verify returns for a request without one.
var ErrUnsigned = errors.New("the request is not signed")

// Signature is how the senders of a surface sign.
type Signature struct {
	// Source returns the source that a request's path names, "" for none.
	Source func(c *fiber.Ctx) string
	// Verify checks a request's signature by the secret of its token. It
	// returns ErrUnsigned, perhaps wrapped, if the request has none, and any
	// other error if it has a wrong one. Its text may go to the log.
	Verify func(c *fiber.Ctx, secret string) error
	Logger *slog.Logger
}

// RequireSigned lets requests through that Require lets through, and those
// without a token's text whose path names a token by its source and which the
// token's secret has signed. A source alone opens nothing: it is no secret. Where
// the text is given and the token has a secret, a wrong signature is refused
// all the same.
func (a *Auth) RequireSigned(scope account.Scope, s Style, sig Signature) fiber.Handler {
	var said atomic.Int64 // the second in which a refusal was logged: anybody can cause one
	return func(c *fiber.Ctx) error {
		t, bySource := byText(s.Credential(c)), false
		if t.text == "" {
			if t.source = sig.Source(c); t.source == "" {
				return s.Unauthenticated(c)
			}
			t.sum, bySource = sha256.Sum256([]byte("source\x00"+t.source)), true
		}
		token, err := a.token(c.UserContext(), t)
		if err == nil {
			if wrong := sig.check(c, token, bySource); wrong != nil {
				if now := a.now().Unix(); said.Swap(now) != now {
					sig.Logger.Warn("signature refused", "account", token.Account, "path", c.Route().Path, "error", wrong)
				}
				return s.Unauthenticated(c)
			}
		}
		return admit(c, scope, s, token, err)
	}
}

// check verifies what has to be verified.
func (sig *Signature) check(c *fiber.Ctx, token account.Token, bySource bool) error {
	if token.Secret == "" {
		if bySource {
			return errors.New("the token that the source names has no secret")
		}
		return nil
	}
	err := sig.Verify(c, token.Secret)
	if !bySource && errors.Is(err, ErrUnsigned) {
		return nil // the text is proof enough
	}
	return err
}
