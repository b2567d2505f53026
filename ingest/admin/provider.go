package admin

import (
	"context"
	"crypto/subtle"
	"net/url"
	"strings"

	"github.com/gofiber/fiber/v2"

	"github.com/penstock/penstock/ingest/httpd"
	"github.com/penstock/penstock/relay"
	"github.com/penstock/penstock/relay/user"
)

// Provider is an OpenID Connect provider through which users sign in.
type Provider interface {
	// Begin returns a new attempt and the URL to which to redirect the browser.
	Begin(ctx context.Context) (attempt user.Attempt, providerURL string, err error)
	// Finish returns the identity for the code of an attempt. It returns relay.KindForbidden
	// if the user may not sign in.
	Finish(ctx context.Context, a user.Attempt, code string) (user.Identity, error)
}

// consolePage is the page to which a browser is redirected after a sign-in.
const consolePage = "/console"

// showProvider reports whether users may sign in through a provider.
func (s *Surface) showProvider(c *fiber.Ctx) error {
	return c.JSON(fiber.Map{"data": fiber.Map{"enabled": s.Provider != nil}})
}

// startProvider redirects the browser to the provider.
func (s *Surface) startProvider(c *fiber.Ctx) error {
	if s.Provider == nil {
		return relay.Errorf(relay.KindNotFound, "no provider")
	}
	attempt, providerURL, err := s.Provider.Begin(c.UserContext())
	if err != nil {
		return s.backToConsole(c, err)
	}
	if err := s.setAttempt(c, attempt); err != nil {
		return err
	}
	return c.Redirect(providerURL, fiber.StatusFound)
}

// finishProvider begins a session after the provider has redirected the browser to the gateway.
func (s *Surface) finishProvider(c *fiber.Ctx) error {
	if s.Provider == nil {
		return relay.Errorf(relay.KindNotFound, "no provider")
	}
	attempt, ok := s.attemptOf(c)
	s.expireCookie(c, attemptCookie, fiber.CookieSameSiteLaxMode)
	if state := c.Query("state"); !ok || subtle.ConstantTimeCompare([]byte(state), []byte(attempt.State)) != 1 {
		return s.backToConsole(c, relay.Errorf(relay.KindForbidden, "the sign-in was not begun in this browser, or took longer than 10 minutes"))
	}
	if providerErr := c.Query("error"); providerErr != "" {
		return s.backToConsole(c, relay.Errorf(relay.KindForbidden, "the provider answered %q", providerErr))
	}
	identity, err := s.Provider.Finish(c.UserContext(), attempt, strings.Clone(c.Query("code")))
	if err != nil {
		return s.backToConsole(c, err)
	}
	acct, err := s.accountOfIdentity(c.UserContext(), identity)
	if err != nil {
		return s.backToConsole(c, err)
	}
	session, err := s.Users.SignInAs(c.UserContext(), identity, acct)
	if err != nil {
		return s.backToConsole(c, err)
	}
	if err := s.beginSession(c, session); err != nil {
		return s.backToConsole(c, err)
	}
	return c.Redirect(consolePage, fiber.StatusFound)
}

// accountOfIdentity returns the account of an identity with the role account, or 0 for other roles.
func (s *Surface) accountOfIdentity(ctx context.Context, identity user.Identity) (relay.AccountID, error) {
	if identity.Role != user.Account {
		return 0, nil
	}
	id, err := s.findAccount(ctx, AccountRef(identity.Account))
	if err == nil && id != 0 {
		_, err = s.Accounts.Account(ctx, id)
	}
	if kind := relay.KindOf(err); err == nil && id == 0 || kind == relay.KindInvalid || kind == relay.KindNotFound {
		return 0, relay.Errorf(relay.KindForbidden, "the provider names the account %q, which does not exist", identity.Account)
	}
	return id, err
}

// backToConsole redirects the browser to the console after a failed sign-in. The URL has the outcome
// refused or unavailable; the log has the reason.
func (s *Surface) backToConsole(c *fiber.Ctx, err error) error {
	outcome := "refused"
	if relay.KindOf(err) != relay.KindForbidden && relay.KindOf(err) != relay.KindUnauthenticated {
		outcome = "unavailable"
	}
	s.Logger.WarnContext(c.UserContext(), "sign-in through the OpenID Connect provider failed", "outcome", outcome, "address", httpd.ClientIP(c), "error", err)
	return c.Redirect(consolePage+"#/?"+url.Values{"sign_in": {outcome}}.Encode(), fiber.StatusFound)
}
