package admin

import (
	"crypto/subtle"
	"net/url"

	"github.com/gofiber/fiber/v2"

	"github.com/penstock/penstock/ingest/httpd"
	"github.com/penstock/penstock/relay"
	"github.com/penstock/penstock/relay/audit"
	"github.com/penstock/penstock/relay/user"
)

// principal is who makes a request.
type principal struct {
	name    string
	role    user.Role
	account relay.AccountID // of the role account
	// session is that of a user; nil for the admin token.
	session *user.SignedIn
	// peer is the node of another gateway, which has authorised the request of a user with
	// peerRole, and hides in the answer what the user may not see.
	peer     string
	peerRole user.Role
}

// principalKey is the key of a request's principal in its locals.
type principalKey struct{}

// principalOf returns who makes a request.
func principalOf(c *fiber.Ctx) principal {
	p, _ := c.Locals(principalKey{}).(principal)
	return p
}

// headerCSRF is the header that a write with a session's cookie needs.
const headerCSRF = "X-CSRF-Token"

// authorize passes requests of who may use the operation, by the admin token or the
// cookie of a session.
func (s *Surface) authorize(c *fiber.Ctx) error {
	o := s.operationOf(c)
	if o.open {
		return c.Next()
	}
	who, err := s.authenticate(c)
	if err != nil {
		return err
	}
	if !o.allows(who.role) {
		return httpd.Message(c, fiber.StatusForbidden, "The role "+string(who.role)+" may not do this; it takes "+o.needs()+".")
	}
	c.Locals(principalKey{}, who)
	if o.search {
		if err := admitSearch(c, who); err != nil {
			return err
		}
	}
	return c.Next()
}

// admitSearch admits a request as a search. Those of viewers, and those of other staff,
// share what one account may use.
func admitSearch(c *fiber.Ctx, who principal) error {
	acct := who.account
	if who.role == user.Viewer {
		acct = viewers
	}
	return httpd.AdmitTo(c, httpd.Searches, acct)
}

// viewers is the account that searches of viewers are counted as.
const viewers = relay.AccountID(-1)

// authenticate returns who makes a request. A token wins over a cookie.
func (s *Surface) authenticate(c *fiber.Ctx) (principal, error) {
	if c.Get(fiber.HeaderAuthorization) != "" {
		return principal{name: audit.AdminToken, role: user.Admin}, s.auth.AdmitAdmin(c)
	}
	in, err := s.sessionOf(c)
	if err != nil {
		return principal{}, err
	}
	if c.Method() != fiber.MethodGet && c.Method() != fiber.MethodHead {
		if err := sameSite(c, s.PublicURL); err != nil {
			return principal{}, err
		}
		if subtle.ConstantTimeCompare([]byte(c.Get(headerCSRF)), []byte(in.CSRF())) != 1 {
			return principal{}, fiber.NewError(fiber.StatusForbidden, "The request lacks the "+headerCSRF+" of its session.")
		}
	}
	httpd.AdmitOperator(c)
	return principal{name: in.User.Name, role: in.User.Role, account: in.User.Account, session: &in}, nil
}

// sessionOf returns the session of a request's cookie.
func (s *Surface) sessionOf(c *fiber.Ctx) (user.SignedIn, error) {
	token := c.Cookies(s.named(c, sessionCookie))
	if token == "" || s.Users == nil {
		return user.SignedIn{}, fiber.NewError(fiber.StatusUnauthorized, "Unauthenticated.")
	}
	in, err := s.Users.Session(c.UserContext(), string([]byte(token)))
	if relay.KindOf(err) == relay.KindUnauthenticated {
		return in, fiber.NewError(fiber.StatusUnauthorized, "Unauthenticated.")
	}
	return in, err
}

// sameSite refuses a request that the page of another site makes.
func sameSite(c *fiber.Ctx, publicURL string) error {
	switch c.Get("Sec-Fetch-Site") {
	case "", "same-origin", "none":
	default:
		return fiber.NewError(fiber.StatusForbidden, "Requests from other sites are refused.")
	}
	origin := c.Get(fiber.HeaderOrigin)
	if origin == "" {
		return nil
	}
	from, err := url.Parse(origin)
	own, _ := url.Parse(publicURL)
	if err == nil && from.Host != "" && (from.Host == string(c.Request().Host()) || own != nil && from.Host == own.Host) {
		return nil
	}
	return fiber.NewError(fiber.StatusForbidden, "Requests from other sites are refused.")
}

// sees reports whether a request may see the records of an account.
func sees(c *fiber.Ctx, acct relay.AccountID) bool {
	who := principalOf(c)
	return who.role != user.Account || who.account == acct
}

// seesBackends reports whether a request may read the errors of back ends: with the
// admin token, or in a session that is not one of an account.
func (s *Surface) seesBackends(c *fiber.Ctx) bool {
	if s.auth == nil {
		return false
	}
	if c.Get(fiber.HeaderAuthorization) != "" {
		return s.auth.IsAdmin(c)
	}
	in, err := s.sessionOf(c)
	return err == nil && in.User.Role != user.Account
}
