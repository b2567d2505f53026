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

// Signature defines how requests to a surface are signed.
type Signature struct {
	// Source returns the source in the path of a request, or "".
	Source func(c *fiber.Ctx) string
	// Verify checks the signature of a request with the secret of its token. It returns
	// ErrUnsigned, possibly wrapped, if the request has no signature, and another error, which
	// is logged, if the signature is wrong. It returns errors of Body and RawBody unchanged.
	Verify func(c *fiber.Ctx, secret string) error
	Logger *slog.Logger
}

// RequireSigned returns a handler that passes requests with a token like Require. It also passes
// requests without the text of a token if their path has the source of a token and they are signed
// with the token's secret. If the token has a secret, it refuses a wrong signature even with the
// token's text.
func (a *Auth) RequireSigned(scope account.Scope, s Style, sig Signature) fiber.Handler {
	return func(c *fiber.Ctx) error {
		cred, bySource := tokenCredential(s.Credential(c)), false
		if cred.text == "" {
			if cred.source = sig.Source(c); cred.source == "" {
				return s.Unauthenticated(c)
			}
			cred.sum, bySource = sha256.Sum256([]byte("source\x00"+cred.source)), true
		}
		attempt := attemptOf(c, "", cred.sum)
		if bySource {
			attempt = attemptOf(c, "source "+cred.source, cred.sum)
		}
		if wait := a.limiter.Wait(attempt); wait > 0 {
			return tooMany(c, wait)
		}
		s := s.withPendingInventory(a.limiter.CheckInventory())
		token, err := a.token(c.UserContext(), cred)
		if err == nil {
			sigErr := sig.check(c, token, bySource)
			if _, isFiberErr := errors.AsType[*fiber.Error](sigErr); isFiberErr || relay.KindOf(sigErr) == relay.KindUnavailable {
				return sigErr // the signed body did not arrive
			}
			if sigErr != nil {
				sig.Logger.WarnContext(c.UserContext(), "signature refused", "account", token.Account, "path", c.Route().Path, "error", sigErr)
				a.limiter.RecordFailure(attempt)
				return s.Unauthenticated(c)
			}
		}
		a.recordAttempt(attempt, err)
		return admit(c, scope, s, token, err)
	}
}

// check verifies the signature with the secret of the token. If the token has no secret, check
// refuses requests that are identified by their source.
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
