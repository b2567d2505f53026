package admin

import (
	"encoding/base64"
	"encoding/json"
	"time"

	"github.com/gofiber/fiber/v2"

	"github.com/penstock/penstock/ingest/httpd"
	"github.com/penstock/penstock/relay/user"
)

// attemptCookie is the cookie of a sign-in at a provider.
const attemptCookie = "penstock_sign_in"

// cookie returns a cookie that the browser sends to this gateway alone, and shows to no
// script.
func (s *Surface) cookie(c *fiber.Ctx, name, sameSite string) fiber.Cookie {
	return fiber.Cookie{Name: s.auth.CookieName(c, name), Path: "/", HTTPOnly: true, Secure: s.auth.Secure(c), SameSite: sameSite}
}

// setSession has the browser keep a session.
func (s *Surface) setSession(c *fiber.Ctx, session user.SignedIn) {
	k := s.cookie(c, httpd.SessionCookie, fiber.CookieSameSiteStrictMode)
	k.Value, k.Expires = session.Token, session.ExpiresAt
	c.Cookie(&k)
}

// clearSession makes the browser delete its session.
func (s *Surface) clearSession(c *fiber.Ctx) {
	s.expire(c, httpd.SessionCookie, fiber.CookieSameSiteStrictMode)
}

func (s *Surface) expire(c *fiber.Ctx, name, sameSite string) {
	k := s.cookie(c, name, sameSite)
	k.Expires, k.MaxAge = time.Unix(1, 0), -1
	c.Cookie(&k)
}

// attemptTime is the time that a sign-in at a provider may take.
const attemptTime = 10 * time.Minute

// setAttempt has the browser keep what its return from the provider is recognised by.
// It is Lax, because the provider's page leads there.
func (s *Surface) setAttempt(c *fiber.Ctx, a user.Attempt) error {
	raw, err := json.Marshal(a)
	if err != nil {
		return err
	}
	k := s.cookie(c, attemptCookie, fiber.CookieSameSiteLaxMode)
	k.Value, k.MaxAge = base64.RawURLEncoding.EncodeToString(raw), int(attemptTime.Seconds())
	c.Cookie(&k)
	return nil
}

// attemptOf returns what the browser kept; ok is false for nothing.
func (s *Surface) attemptOf(c *fiber.Ctx) (a user.Attempt, ok bool) {
	raw, err := base64.RawURLEncoding.DecodeString(c.Cookies(s.auth.CookieName(c, attemptCookie)))
	if err != nil || json.Unmarshal(raw, &a) != nil {
		return a, false
	}
	return a, a.State != "" && a.Nonce != "" && a.Verifier != ""
}
