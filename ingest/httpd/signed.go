package httpd

import (
	"crypto/sha256"
	"errors"
	"log/slog"

	"github.com/gofiber/fiber/v2"

	"github.com/penstock/penstock/relay"
	"github.com/penstock/penstock/relay/account"
)

// ErrUnsigned is the error of a Signature's Verify for a request without a signature.
var ErrUnsigned = errors.New("the request is not signed")

// Signature defines the signatures of the requests to a surface.
type Signature struct {
	// Source returns the source in the path of a request, "" for none.
	Source func(c *fiber.Ctx) string
	// Verify checks the signature of a request with the secret of its token. It returns
	// ErrUnsigned, possibly wrapped, if the request has no signature, and another error if the
	// signature is wrong; the text of the error is logged. It returns errors of Body and
	// RawBody as they are.
	Verify func(c *fiber.Ctx, secret string) error
	Logger *slog.Logger
}

// RequireSigned passes the requests that Require passes. It also passes requests without the text
// of a token if their path has the source of a token and they are signed with its secret; the
// source alone is not sufficient, because it is not secret. It refuses a wrong signature even if
// the request has the text of the token.
func (a *Auth) RequireSigned(scope account.Scope, s Style, sig Signature) fiber.Handler {
	return func(c *fiber.Ctx) error {
		t, bySource := byTokenText(s.Credential(c)), false
		if t.text == "" {
			if t.source = sig.Source(c); t.source == "" {
				return s.Unauthenticated(c)
			}
			t.sum, bySource = sha256.Sum256([]byte("source\x00"+t.source)), true
		}
		attempt := attemptOf(c, "", t.sum)
		if bySource {
			attempt = attemptOf(c, "source "+t.source, t.sum)
		}
		if wait := a.guesses.Wait(attempt); wait > 0 {
			return tooMany(c, wait)
		}
		s := s.orUnsure(a.guesses.Unsure())
		token, err := a.token(c.UserContext(), t)
		if err == nil {
			wrong := sig.check(c, token, bySource)
			if _, unread := errors.AsType[*fiber.Error](wrong); unread || relay.KindOf(wrong) == relay.KindUnavailable {
				return wrong // the signed body did not arrive
			}
			if wrong != nil {
				sig.Logger.WarnContext(c.UserContext(), "signature refused", "account", token.Account, "path", c.Route().Path, "error", wrong)
				a.guesses.Wrong(attempt)
				return s.Unauthenticated(c)
			}
		}
		a.recordAttempt(attempt, err)
		return admit(c, scope, s, token, err)
	}
}

// check verifies the signature with the secret of the token. If the token has no secret, check
// accepts only requests that are not identified by their source.
func (sig *Signature) check(c *fiber.Ctx, token account.Token, bySource bool) error {
	if token.Secret == "" {
		if bySource {
			return errors.New("the token of the source has no secret")
		}
		return nil
	}
	err := sig.Verify(c, token.Secret)
	if !bySource && errors.Is(err, ErrUnsigned) {
		return nil // the token's text is sufficient
	}
	return err
}
