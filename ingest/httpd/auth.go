package httpd

import (
	"context"
	"crypto/sha256"
	"crypto/subtle"
	"encoding/base64"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/gofiber/fiber/v2"

	"github.com/penstock/penstock/relay"
	"github.com/penstock/penstock/relay/account"
)

// remembered is how long a known token works without the store.
const remembered = 10 * time.Minute

// fresh is how long a known token is not asked for again.
const fresh = 30 * time.Second

// maxRemembered bounds the memory; senders are few.
const maxRemembered = 100_000

// Tokens looks tokens up; account.Store has it.
type Tokens interface {
	Token(ctx context.Context, hash string) (account.Token, error)
	TokenBySource(ctx context.Context, source string) (account.Token, error)
}

// Auth knows who a request comes from. It remembers tokens, so that the senders
// it knows are accepted while the store is down.
type Auth struct {
	tokens Tokens
	admins [][sha256.Size]byte // none: nobody is the administrator
	now    func() time.Time
	known  atomic.Pointer[sync.Map] // [32]byte → *memo
	size   atomic.Int64
}

type memo struct {
	token  account.Token
	at     time.Time
	asking atomic.Bool
}

// NewAuth returns an Auth over a store of tokens and the admin token's text;
// with an empty one nobody is the administrator.
func NewAuth(tokens Tokens, adminToken string, now func() time.Time) *Auth {
	a := &Auth{tokens: tokens, now: now}
	a.known.Store(new(sync.Map))
	a.TrustAdmin(adminToken)
	return a
}

// TrustAdmin lets another token be the administrator's: the one that gateways
// share. It is called before the first request.
func (a *Auth) TrustAdmin(token string) {
	if token != "" {
		a.admins = append(a.admins, sha256.Sum256([]byte(token)))
	}
}

// Forget drops what is remembered: a token may have been revoked.
func (a *Auth) Forget() {
	a.known.Store(new(sync.Map))
	a.size.Store(0)
}

// Style is how a surface takes credentials and refuses them.
type Style struct {
	// Credential finds the token's text in a request; "" if there is none.
	Credential func(c *fiber.Ctx) string
	// Unauthenticated and Forbidden write the refusals.
	Unauthenticated, Forbidden fiber.Handler
}

// principalKey is where the token of a request is kept.
type principalKey struct{}

// Require lets requests through whose token has the scope.
func (a *Auth) Require(scope account.Scope, s Style) fiber.Handler {
	return func(c *fiber.Ctx) error {
		text := s.Credential(c)
		if text == "" {
			return s.Unauthenticated(c)
		}
		token, err := a.token(c.UserContext(), byText(text))
		return admit(c, scope, s, token, err)
	}
}

// admit lets a request through whose token was found and has the scope.
func admit(c *fiber.Ctx, scope account.Scope, s Style, token account.Token, err error) error {
	switch {
	case relay.KindOf(err) == relay.KindNotFound:
		return s.Unauthenticated(c)
	case err != nil:
		return err
	case !token.Has(scope):
		return s.Forbidden(c)
	}
	c.Locals(principalKey{}, token)
	return c.Next()
}

// AccountOf returns the account of an authenticated request.
func AccountOf(c *fiber.Ctx) account.ID { return TokenOf(c).Account }

// TokenOf returns the token of an authenticated request.
func TokenOf(c *fiber.Ctx) account.Token {
	t, _ := c.Locals(principalKey{}).(account.Token)
	return t
}

// ticket is what names a token in a request: its text, or a source.
type ticket struct {
	sum    [sha256.Size]byte // what it is remembered by
	text   string
	source string
}

func byText(text string) ticket { return ticket{sum: sha256.Sum256([]byte(text)), text: text} }

// find asks the store for the token.
func (t ticket) find(ctx context.Context, tokens Tokens) (account.Token, error) {
	if t.source != "" {
		return tokens.TokenBySource(ctx, t.source)
	}
	return tokens.Token(ctx, account.HashToken(t.text))
}

// token looks a token up, in memory first. One that is known but no longer
// fresh is served while it is asked for again: a store that hangs delays no
// known sender.
func (a *Auth) token(ctx context.Context, t ticket) (account.Token, error) {
	known := a.known.Load()
	kept, _ := known.Load(t.sum)
	m, _ := kept.(*memo)
	now := a.now()
	if m == nil || now.Sub(m.at) >= remembered {
		return a.ask(ctx, known, t)
	}
	if now.Sub(m.at) >= fresh && m.asking.CompareAndSwap(false, true) {
		a.askAgain(ctx, known, m, t)
	}
	return m.token, nil
}

// askAgain renews what is remembered, behind the request's back.
func (a *Auth) askAgain(ctx context.Context, known *sync.Map, m *memo, t ticket) {
	t.text, t.source = strings.Clone(t.text), strings.Clone(t.source) // the request's memory is used again
	go func() {
		defer m.asking.Store(false)
		_, _ = a.ask(context.WithoutCancel(ctx), known, t)
	}()
}

// ask looks a token up in the store and remembers the answer.
func (a *Auth) ask(ctx context.Context, known *sync.Map, t ticket) (account.Token, error) {
	token, err := t.find(ctx, a.tokens)
	switch {
	case err == nil:
		a.remember(known, t.sum, &memo{token: token, at: a.now()})
	case relay.KindOf(err) == relay.KindNotFound:
		if _, had := known.LoadAndDelete(t.sum); had {
			a.size.Add(-1)
		}
	}
	return token, err
}

func (a *Auth) remember(known *sync.Map, sum [sha256.Size]byte, m *memo) {
	if _, had := known.Swap(sum, m); !had && a.size.Add(1) > maxRemembered {
		a.Forget()
	}
}

// RequireAdmin lets requests through that carry the admin token.
func (a *Auth) RequireAdmin(c *fiber.Ctx) error {
	sum := sha256.Sum256([]byte(Bearer(c)))
	known := 0
	for i := range a.admins {
		known |= subtle.ConstantTimeCompare(sum[:], a.admins[i][:])
	}
	if known != 1 {
		return Message(c, fiber.StatusUnauthorized, "Unauthenticated.")
	}
	return c.Next()
}

// Bearer returns the token of Authorization: Bearer.
func Bearer(c *fiber.Ctx) string {
	scheme, token, ok := strings.Cut(c.Get(fiber.HeaderAuthorization), " ")
	if !ok || !strings.EqualFold(scheme, "Bearer") {
		return ""
	}
	return strings.TrimSpace(token)
}

// BearerOrBare returns the token of Authorization, with or without the word
// Bearer.
func BearerOrBare(c *fiber.Ctx) string {
	if token := Bearer(c); token != "" {
		return token
	}
	bare := c.Get(fiber.HeaderAuthorization)
	if strings.ContainsAny(bare, " \t") {
		return ""
	}
	return bare
}

// XAuthToken returns the token of X-Auth-Token.
func XAuthToken(c *fiber.Ctx) string { return c.Get("X-Auth-Token") }

// AnyCredential takes Bearer, a bare Authorization, Basic with the token as
// password, or X-Auth-Token: senders differ in what they can set.
func AnyCredential(c *fiber.Ctx) string {
	if token := BearerOrBare(c); token != "" {
		return token
	}
	if token := basicPassword(c.Get(fiber.HeaderAuthorization)); token != "" {
		return token
	}
	return XAuthToken(c)
}

func basicPassword(header string) string {
	scheme, encoded, ok := strings.Cut(header, " ")
	if !ok || !strings.EqualFold(scheme, "Basic") {
		return ""
	}
	b, err := base64.StdEncoding.DecodeString(strings.TrimSpace(encoded))
	if err != nil {
		return ""
	}
	_, password, _ := strings.Cut(string(b), ":")
	return password
}

// Refuse returns a handler that answers with a status and a message.
func Refuse(status int, message string) fiber.Handler {
	return func(c *fiber.Ctx) error { return Message(c, status, message) }
}

// WebhookStyle is that of webhooks, carriers and CDR senders.
func WebhookStyle() Style {
	return Style{
		Credential:      AnyCredential,
		Unauthenticated: Refuse(fiber.StatusUnauthorized, "Unauthenticated."),
		Forbidden:       Refuse(fiber.StatusForbidden, "Forbidden."),
	}
}

// IoTStyle is that of decoders and devices.
func IoTStyle() Style {
	return Style{
		Credential:      BearerOrBare,
		Unauthenticated: Refuse(fiber.StatusUnauthorized, "Unauthenticated."),
		Forbidden:       Refuse(fiber.StatusForbidden, "This action is unauthorised."),
	}
}
