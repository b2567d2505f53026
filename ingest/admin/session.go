package admin

import (
	"encoding/base64"
	"encoding/json"
	"errors"
	"mime"
	"time"

	"github.com/gofiber/fiber/v2"

	"github.com/penstock/penstock/ingest/httpd"
	"github.com/penstock/penstock/relay"
	"github.com/penstock/penstock/relay/audit"
	"github.com/penstock/penstock/relay/user"
)

// sessionJSON is the user of a session.
type sessionJSON struct {
	Name        string           `json:"name"`
	Role        user.Role        `json:"role"`
	Account     *relay.AccountID `json:"account"`  // null unless the role is account
	Provider    string           `json:"provider"` // password, oidc, or token
	CSRF        string           `json:"csrf_token"`
	ExpiresAt   *string          `json:"expires_at"`
	AccountName string           `json:"account_name,omitempty"`
	Operations  []string         `json:"operations"` // the operationIds that the role may use
}

func (s *Surface) sessionJSONOf(session user.SignInResult) sessionJSON {
	view := sessionJSON{
		Name: session.User.Name, Role: session.User.Role, Provider: string(session.User.Provider), CSRF: session.CSRF(), ExpiresAt: formatTimeOrNil(session.ExpiresAt),
		Operations: s.operationsOf(session.User.Role),
	}
	if session.User.Role == user.Account {
		view.Account = &session.User.Account
	}
	return view
}

// signIn begins a session of a user with a password. It requires JSON, which forms cannot send, so
// that another site cannot sign its visitors in.
func (s *Surface) signIn(c *fiber.Ctx) error {
	if kind, _, _ := mime.ParseMediaType(c.Get(fiber.HeaderContentType)); kind != fiber.MIMEApplicationJSON {
		return fiber.NewError(fiber.StatusUnsupportedMediaType, "Content-Type must be application/json.")
	}
	if err := s.auth.CheckSite(c); err != nil {
		return err
	}
	var form struct {
		Name     string `json:"name"`
		Password string `json:"password"`
	}
	if err := readJSON(c, maxForm, &form); err != nil {
		return err
	}
	p := relay.Problems{}
	p.Require("name", form.Name)
	p.Require("password", form.Password)
	if err := p.Err(); err != nil {
		return err
	}
	name, _ := user.ParseName(form.Name)
	attempt, err := s.passwordAttempt(c, name, form.Password)
	if err != nil {
		return err
	}
	session, err := s.Users.SignIn(c.UserContext(), form.Name, form.Password)
	if relay.KindOf(err) == relay.KindUnauthenticated {
		s.auth.AttemptLimiter().RecordFailure(attempt)
		return httpd.Message(c, fiber.StatusUnauthorized, err.Error())
	}
	if err != nil {
		return err
	}
	s.auth.AttemptLimiter().RecordSuccess(attempt)
	if err := s.beginSession(c, session); err != nil {
		return err
	}
	return c.JSON(fiber.Map{"data": s.sessionJSONOf(session)})
}

// passwordAttempt returns the attempt to use a password. After too many wrong passwords it returns
// an error with the status 429.
func (s *Surface) passwordAttempt(c *fiber.Ctx, name, password string) (httpd.Attempt, error) {
	attempt := httpd.AttemptOf(c, "user "+name, name+"\x00"+password)
	if wait := s.auth.AttemptLimiter().Wait(attempt); wait > 0 {
		c.Set(fiber.HeaderRetryAfter, httpd.RetryAfter(wait))
		return attempt, fiber.NewError(fiber.StatusTooManyRequests, httpd.TooManyAttempts)
	}
	return attempt, nil
}

// beginSession records a sign-in in the audit log and sets the cookie of the session.
func (s *Surface) beginSession(c *fiber.Ctx, session user.SignInResult) error {
	now := s.Now().UTC()
	err := s.Audit.Begin(c.UserContext(), audit.Entry{
		ID: relay.NewID(now), At: now, Actor: session.User.Name, Role: string(session.User.Role), Address: httpd.ClientIP(c), Operation: "signIn",
		Account: session.User.Account, Target: session.User.Name, Outcome: audit.Done, Status: fiber.StatusOK,
		Request: audit.Document(map[string]any{"provider": session.User.Provider}),
	})
	if err != nil {
		return errors.Join(err, s.Users.SignOut(c.UserContext(), session.Token))
	}
	cookie := s.cookie(c, httpd.SessionCookie, fiber.CookieSameSiteStrictMode)
	cookie.Value, cookie.Expires = session.Token, session.ExpiresAt
	c.Cookie(&cookie)
	return nil
}

// showSession answers with the user of the request.
func (s *Surface) showSession(c *fiber.Ctx) error {
	p := principalOf(c)
	if p.Session == nil {
		return c.JSON(fiber.Map{"data": sessionJSON{Name: p.Name, Role: p.Role, Provider: "token", Operations: s.operationsOf(p.Role)}})
	}
	view := s.sessionJSONOf(*p.Session)
	if p.Role == user.Account {
		a, err := s.Accounts.Account(c.UserContext(), p.Account)
		if err != nil && relay.KindOf(err) != relay.KindNotFound {
			return err
		}
		view.AccountName = a.Name
	}
	return c.JSON(fiber.Map{"data": view})
}

// signOut ends the session of the request.
func (s *Surface) signOut(c *fiber.Ctx) error {
	if p := principalOf(c); p.Session != nil {
		if err := s.Users.SignOut(c.UserContext(), p.Session.Token); err != nil {
			return err
		}
	}
	s.expireCookie(c, httpd.SessionCookie, fiber.CookieSameSiteStrictMode)
	return c.SendStatus(fiber.StatusNoContent)
}

// setOwnPassword changes the password of the user who makes the request, and ends all of the
// user's sessions.
func (s *Surface) setOwnPassword(c *fiber.Ctx) error {
	p := principalOf(c)
	if p.Session == nil {
		return relay.Errorf(relay.KindForbidden, "The admin token has no password.")
	}
	var form struct {
		Password    string `json:"password"`
		NewPassword string `json:"new_password"`
	}
	if err := readJSON(c, maxForm, &form); err != nil {
		return err
	}
	httpd.NoteOf(c).Target = p.Name
	attempt, err := s.passwordAttempt(c, p.Name, form.Password)
	if err != nil {
		return err
	}
	err = s.Users.SetOwnPassword(c.UserContext(), p.Name, form.Password, form.NewPassword)
	if relay.FieldsOf(err)["password"] != nil {
		s.auth.AttemptLimiter().RecordFailure(attempt)
	}
	if err != nil {
		return err
	}
	s.expireCookie(c, httpd.SessionCookie, fiber.CookieSameSiteStrictMode)
	return c.SendStatus(fiber.StatusNoContent)
}

// attemptCookie is the name of the cookie of a sign-in through a provider.
const attemptCookie = "penstock_sign_in"

// cookie returns a cookie that browsers send only to this gateway and hide from scripts.
func (s *Surface) cookie(c *fiber.Ctx, name, sameSite string) fiber.Cookie {
	return fiber.Cookie{Name: s.auth.CookieName(c, name), Path: "/", HTTPOnly: true, Secure: s.auth.Secure(c), SameSite: sameSite}
}

// expireCookie makes the browser delete a cookie.
func (s *Surface) expireCookie(c *fiber.Ctx, name, sameSite string) {
	cookie := s.cookie(c, name, sameSite)
	cookie.Expires, cookie.MaxAge = time.Unix(1, 0), -1
	c.Cookie(&cookie)
}

// attemptTime is the time limit of a sign-in through a provider.
const attemptTime = 10 * time.Minute

// setAttempt stores the attempt in a cookie for finishProvider. The cookie is Lax because the
// provider's page redirects to the gateway.
func (s *Surface) setAttempt(c *fiber.Ctx, a user.Attempt) error {
	raw, err := json.Marshal(a)
	if err != nil {
		return err
	}
	cookie := s.cookie(c, attemptCookie, fiber.CookieSameSiteLaxMode)
	cookie.Value, cookie.MaxAge = base64.RawURLEncoding.EncodeToString(raw), int(attemptTime.Seconds())
	c.Cookie(&cookie)
	return nil
}

// attemptOf returns the attempt from the cookie of setAttempt.
func (s *Surface) attemptOf(c *fiber.Ctx) (a user.Attempt, ok bool) {
	raw, err := base64.RawURLEncoding.DecodeString(c.Cookies(s.auth.CookieName(c, attemptCookie)))
	if err != nil || json.Unmarshal(raw, &a) != nil {
		return a, false
	}
	return a, a.State != "" && a.Nonce != "" && a.Verifier != ""
}
