package httpd

import (
	"context"
	"crypto/subtle"
	"net/url"
	"strings"

	"github.com/gofiber/fiber/v2"

	"github.com/penstock/penstock/relay"
	"github.com/penstock/penstock/relay/audit"
	"github.com/penstock/penstock/relay/user"
)

// Sessions finds sessions of users; user.Service implements it.
type Sessions interface {
	Session(ctx context.Context, token string) (user.SignInResult, error)
}

// Principal is the sender of a request with the admin token or a session.
type Principal struct {
	Name    string
	Role    user.Role       // empty for a request with an account's token
	Account relay.AccountID // set for the role account
	// Session is the session of a user; nil for the admin token.
	Session *user.SignInResult
}

type principalKey struct{}

// PrincipalOf returns the principal of a request that acts as an account, and the zero Principal
// for a request with a token of the account.
func PrincipalOf(c *fiber.Ctx) Principal {
	p, _ := c.Locals(principalKey{}).(Principal)
	return p
}

// SeesSecrets reports whether the answer to a request may contain texts of messages, credentials
// and complete URLs.
func SeesSecrets(c *fiber.Ctx) bool { return PrincipalOf(c).Role.SeesTexts() }

// viewers is the account to which searches by viewers are counted.
const viewers = relay.AccountID(-1)

// SearchAccount returns the account to which searches are counted. All viewers together, and all
// other staff together, have the share of one account.
func (p Principal) SearchAccount() relay.AccountID {
	if p.Role == user.Viewer {
		return viewers
	}
	return p.Account
}

// The headers of requests in a session: the token that proves that a page of this gateway sent a
// write, and the account as which the request acts.
const (
	HeaderCSRF    = "X-CSRF-Token"
	HeaderAccount = "X-Account"
)

// Principal authenticates a request by the header Authorization or, without the header, by the
// cookie of a session. The error is a *fiber.Error with the status 401, 403 for a write that may
// come from another site, or 429 after too many wrong credentials.
func (a *Auth) Principal(c *fiber.Ctx) (Principal, error) {
	if c.Get(fiber.HeaderAuthorization) != "" {
		return a.principal(c, Bearer(c))
	}
	return a.sessionPrincipal(c, false)
}

// principal authenticates a request by text, which must be the admin token.
func (a *Auth) principal(c *fiber.Ctx, text string) (Principal, error) {
	isAdmin, wait := a.checkAdmin(c, text)
	switch {
	case wait > 0:
		return Principal{}, tooMany(c, wait)
	case !isAdmin:
		return Principal{}, fiber.NewError(fiber.StatusUnauthorized, "Unauthenticated.")
	}
	AdmitOperator(c)
	return Principal{Name: audit.AdminToken, Role: user.Admin}, nil
}

// sessionPrincipal authenticates a request by the cookie of a session. Writes must have HeaderCSRF;
// changes means that a GET must have it, too.
func (a *Auth) sessionPrincipal(c *fiber.Ctx, changes bool) (Principal, error) {
	session, err := a.SessionOf(c)
	if err != nil {
		return Principal{}, err
	}
	if changes || !reads(c.Method()) {
		if err := a.CheckSite(c); err != nil {
			return Principal{}, err
		}
		if subtle.ConstantTimeCompare([]byte(c.Get(HeaderCSRF)), []byte(session.CSRF())) != 1 {
			return Principal{}, fiber.NewError(fiber.StatusForbidden, "The request lacks the "+HeaderCSRF+" of its session.")
		}
	}
	AdmitOperator(c)
	return Principal{Name: session.User.Name, Role: session.User.Role, Account: session.User.Account, Session: &session}, nil
}

// reads reports whether requests with a method only read.
func reads(method string) bool { return method == fiber.MethodGet || method == fiber.MethodHead }

// SessionOf returns the session of a request's cookie. If there is none, it returns a *fiber.Error
// with the status 401.
func (a *Auth) SessionOf(c *fiber.Ctx) (user.SignInResult, error) {
	token := c.Cookies(a.CookieName(c, SessionCookie))
	if token == "" || a.Sessions == nil {
		return user.SignInResult{}, fiber.NewError(fiber.StatusUnauthorized, "Unauthenticated.")
	}
	session, err := a.Sessions.Session(c.UserContext(), strings.Clone(token))
	if relay.KindOf(err) == relay.KindUnauthenticated {
		return session, fiber.NewError(fiber.StatusUnauthorized, "Unauthenticated.")
	}
	return session, err
}

// CheckSite refuses a request from a page of another site.
func (a *Auth) CheckSite(c *fiber.Ctx) error {
	switch c.Get("Sec-Fetch-Site") {
	case "", "same-origin", "none":
	default:
		return fiber.NewError(fiber.StatusForbidden, "Requests from other sites are refused.")
	}
	origin := c.Get(fiber.HeaderOrigin)
	if origin == "" {
		return nil
	}
	originURL, err := url.Parse(origin)
	publicURL, _ := url.Parse(a.PublicURL)
	if err == nil && originURL.Host != "" && (originURL.Host == string(c.Request().Host()) || publicURL != nil && originURL.Host == publicURL.Host) {
		return nil
	}
	return fiber.NewError(fiber.StatusForbidden, "Requests from other sites are refused.")
}

// SessionCookie is the name of the cookie of a session. Over TLS, names of cookies begin with
// hostPrefix, so that browsers accept them only from this host and over TLS.
const (
	SessionCookie = "penstock_session"
	hostPrefix    = "__Host-"
)

// Secure reports whether the browser reaches the gateway over TLS.
func (a *Auth) Secure(c *fiber.Ctx) bool {
	return c.Protocol() == "https" || strings.HasPrefix(a.PublicURL, "https://")
}

// CookieName returns the name of a cookie, with hostPrefix over TLS.
func (a *Auth) CookieName(c *fiber.Ctx, name string) string {
	if a.Secure(c) {
		return hostPrefix + name
	}
	return name
}
