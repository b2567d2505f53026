package admin

import (
	"encoding/base64"
	"encoding/json"
	"strings"
	"time"

	"github.com/gofiber/fiber/v2"

	"github.com/penstock/penstock/relay/user"
)

// The names of cookies. Under TLS they begin with __Host-, which has browsers take them
// from this host over TLS alone.
const (
	sessionCookie = "penstock_session"
	attemptCookie = "penstock_sign_in"
	hostPrefix    = "__Host-"
)

// secure reports whether the browser reaches the gateway over TLS.
func (s *Surface) secure(c *fiber.Ctx) bool {
	return c.Protocol() == "https" || strings.HasPrefix(s.PublicURL, "https://")
}

func (s *Surface) named(c *fiber.Ctx, name string) string {
	if s.secure(c) {
		return hostPrefix + name
	}
	return name
}

func (s *Surface) cookieName(c *fiber.Ctx) string { return s.named(c, sessionCookie) }

// setSession has the browser keep a session.
func (s *Surface) setSession(c *fiber.Ctx, in user.SignedIn) {
	c.Cookie(&fiber.Cookie{
		Name: s.cookieName(c), Value: in.Token, Path: "/", Expires: in.ExpiresAt, HTTPOnly: true, Secure: s.secure(c), SameSite: fiber.CookieSameSiteStrictMode,
	})
}

// clearSession has the browser forget its session.
func (s *Surface) clearSession(c *fiber.Ctx) {
	s.expire(c, sessionCookie, fiber.CookieSameSiteStrictMode)
}

func (s *Surface) expire(c *fiber.Ctx, name, sameSite string) {
	c.Cookie(&fiber.Cookie{
		Name: s.named(c, name), Path: "/", Expires: time.Unix(1, 0), MaxAge: -1, HTTPOnly: true, Secure: s.secure(c), SameSite: sameSite,
	})
}

// attemptTime is how long a sign-in at a provider may take.
const attemptTime = 10 * time.Minute

// setAttempt has the browser keep what its return from the provider is recognised by.
// It is Lax, because the provider's page leads there.
func (s *Surface) setAttempt(c *fiber.Ctx, a user.Attempt) error {
	raw, err := json.Marshal(a)
	if err != nil {
		return err
	}
	c.Cookie(&fiber.Cookie{
		Name: s.named(c, attemptCookie), Value: base64.RawURLEncoding.EncodeToString(raw), Path: "/", MaxAge: int(attemptTime.Seconds()),
		HTTPOnly: true, Secure: s.secure(c), SameSite: fiber.CookieSameSiteLaxMode,
	})
	return nil
}

// attemptOf returns what the browser kept; ok is false for nothing.
func (s *Surface) attemptOf(c *fiber.Ctx) (a user.Attempt, ok bool) {
	raw, err := base64.RawURLEncoding.DecodeString(c.Cookies(s.named(c, attemptCookie)))
	if err != nil || json.Unmarshal(raw, &a) != nil {
		return a, false
	}
	return a, a.State != "" && a.Nonce != "" && a.Verifier != ""
}
