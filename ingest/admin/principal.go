package admin

import (
	"github.com/gofiber/fiber/v2"

	"github.com/penstock/penstock/ingest/httpd"
	"github.com/penstock/penstock/relay"
	"github.com/penstock/penstock/relay/user"
)

// principal is the sender of a request.
type principal struct {
	httpd.Principal
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

// authorize passes requests of who may use the operation, by the admin token or the
// cookie of a session.
func (s *Surface) authorize(c *fiber.Ctx) error {
	o := s.operationOf(c)
	if o.open {
		return c.Next()
	}
	who, err := s.auth.Principal(c)
	if err != nil {
		return err
	}
	if !o.allows(who.Role) {
		return httpd.NotAllowed(who.Role, o.roles)
	}
	c.Locals(principalKey{}, principal{Principal: who})
	if o.search {
		if err := httpd.AdmitTo(c, httpd.Searches, who.SearchAccount()); err != nil {
			return err
		}
	}
	return c.Next()
}

// sees reports whether a request may see the records of an account.
func sees(c *fiber.Ctx, acct relay.AccountID) bool {
	p := principalOf(c)
	return p.Role != user.Account || p.Account == acct
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
	session, err := s.auth.SessionOf(c)
	return err == nil && session.User.Role != user.Account
}
