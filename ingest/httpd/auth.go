package httpd

import (
	"cmp"
	"context"
	"crypto/sha256"
	"crypto/subtle"
	"encoding/base64"
	"log/slog"
	"reflect"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/gofiber/fiber/v2"

	"github.com/penstock/penstock/relay"
	"github.com/penstock/penstock/relay/account"
	"github.com/penstock/penstock/relay/audit"
)

// maxTokenAge is the age up to which a cached token is used while the store is down.
const maxTokenAge = 10 * time.Minute

// refreshAfter is the age at which a cached token is looked up again.
const refreshAfter = 30 * time.Second

// maxCachedTokens is the number of tokens at which the cache is cleared.
const maxCachedTokens = 100_000

// Tokens looks up tokens; account.Store implements it.
type Tokens interface {
	Token(ctx context.Context, hash string) (account.Token, error)
	TokenBySource(ctx context.Context, source string) (account.Token, error)
}

// AuthDeps are the dependencies of an Auth. Only Tokens and Now are required. Without AdminToken,
// Sessions, Accounts, Operations and Audit, users and the admin token cannot act as an account.
type AuthDeps struct {
	Tokens     Tokens
	AdminToken string // empty disables admin access
	Now        func() time.Time
	Sessions   Sessions     // of users
	Accounts   Accounts     // the accounts as which users act
	Operations []Operation  // of the APIs of accounts
	Audit      *audit.Store // records changes by users
	// PublicURL is the gateway's URL for browsers.
	PublicURL string
	Logger    *slog.Logger // nil means slog.Default
}

// Auth authenticates requests. It caches tokens, so that known senders are accepted
// while the store is down.
type Auth struct {
	AuthDeps
	adminSum [sha256.Size]byte        // SHA-256 of AdminToken
	cache    atomic.Pointer[sync.Map] // [32]byte → *cachedToken
	size     atomic.Int64             // the number of tokens in cache
	limiter  *AttemptLimiter
}

type cachedToken struct {
	token      account.Token
	bySource   bool
	loadedAt   time.Time
	refreshing atomic.Bool
}

// NewAuth returns an Auth.
func NewAuth(d AuthDeps) *Auth {
	d.Logger = cmp.Or(d.Logger, slog.Default())
	a := &Auth{AuthDeps: d, limiter: NewAttemptLimiter(d.Now), adminSum: sha256.Sum256([]byte(d.AdminToken))}
	a.cache.Store(new(sync.Map))
	return a
}

// AttemptLimiter returns the limiter of wrong credentials, for surfaces with their own
// authentication.
func (a *Auth) AttemptLimiter() *AttemptLimiter { return a.limiter }

// Changed removes changed and revoked tokens from the cache. stored lists the tokens of the store
// after the change. Unchanged tokens stay in the cache, so that their senders are accepted if the
// store fails soon after the change.
func (a *Auth) Changed(stored []account.Token) {
	byHash, bySource := make(map[string]account.Token, len(stored)), make(map[string]account.Token)
	for _, t := range stored {
		byHash[t.Hash] = t
		source := t.Source
		if _, duplicate := bySource[source]; duplicate {
			t = account.Token{} // differs from every cached token, so that the source is looked up again
		}
		bySource[source] = t
	}
	oldCache, cache, now := a.cache.Load(), new(sync.Map), a.Now()
	copyUnchanged := func() (added int64) {
		oldCache.Range(func(sum, value any) bool {
			cached := value.(*cachedToken)
			current := byHash[cached.token.Hash]
			if cached.bySource {
				current = bySource[cached.token.Source]
			}
			if reflect.DeepEqual(current, cached.token) {
				if _, found := cache.LoadOrStore(sum, &cachedToken{token: cached.token, bySource: cached.bySource, loadedAt: now}); !found {
					added++
				}
			}
			return true
		})
		return added
	}
	size := copyUnchanged()
	a.cache.Store(cache)
	a.size.Store(size)
	a.size.Add(copyUnchanged()) // includes tokens that lookups have added to the old map since
}

// Style defines how a surface reads credentials and refuses requests.
type Style struct {
	Kind Kind
	// Credential returns the text of the token of a request, or "".
	Credential func(c *fiber.Ctx) string
	// Unauthenticated and Forbidden answer refused requests.
	Unauthenticated, Forbidden fiber.Handler
}

type tokenKey struct{}

// Require returns a handler that passes requests with a token that has the scope. If the kind of
// the style is API, the handler also passes requests of users and of the admin token that act as
// the account in X-Account.
func (a *Auth) Require(scope account.Scope, s Style) fiber.Handler {
	return func(c *fiber.Ctx) error {
		text := s.Credential(c)
		if name := c.Get(HeaderAccount); name != "" && s.Kind == API && (text == "" || a.isAdmin(sha256.Sum256([]byte(text)))) {
			return a.act(c, text, name)
		}
		if text == "" {
			return s.Unauthenticated(c)
		}
		cred := tokenCredential(text)
		attempt := attemptOf(c, "", cred.sum)
		if wait := a.limiter.Wait(attempt); wait > 0 {
			return tooMany(c, wait)
		}
		pending := a.limiter.CheckInventory()
		token, err := a.token(c.UserContext(), cred)
		a.recordAttempt(attempt, err)
		if err == nil && s.Kind == API {
			if matches, err := a.accountMatches(c, token.Account); err != nil {
				return err
			} else if !matches {
				return s.Forbidden(c)
			}
		}
		return admit(c, scope, s.withPendingInventory(pending), token, err)
	}
}

// recordAttempt counts an attempt as right if err is nil, and as wrong if err is a NotFound error.
func (a *Auth) recordAttempt(attempt Attempt, err error) {
	switch {
	case err == nil:
		a.limiter.RecordSuccess(attempt)
	case relay.KindOf(err) == relay.KindNotFound:
		a.limiter.RecordFailure(attempt)
	}
}

// withPendingInventory returns the style. If pending, the result of AttemptLimiter.CheckInventory,
// is not nil, the style answers wrong credentials with pending.
func (s Style) withPendingInventory(pending error) Style {
	if pending != nil {
		s.Unauthenticated = func(*fiber.Ctx) error { return pending }
	}
	return s
}

// admit passes a request if its token was found and has the scope; err is the lookup's error.
func admit(c *fiber.Ctx, scope account.Scope, s Style, token account.Token, err error) error {
	switch {
	case relay.KindOf(err) == relay.KindNotFound:
		return s.Unauthenticated(c)
	case err != nil:
		return err
	case !token.HasScope(scope):
		return s.Forbidden(c)
	}
	if err := Admit(c, s.Kind, token.Account); err != nil {
		return err
	}
	c.Locals(tokenKey{}, token)
	return c.Next()
}

type adminKey struct{}

func authenticated(c *fiber.Ctx) bool {
	return c.Locals(tokenKey{}) != nil || c.Locals(adminKey{}) != nil
}

// AccountOf returns the account of an authenticated request.
func AccountOf(c *fiber.Ctx) relay.AccountID { return TokenOf(c).Account }

// TokenOf returns the token of an authenticated request.
func TokenOf(c *fiber.Ctx) account.Token {
	t, _ := c.Locals(tokenKey{}).(account.Token)
	return t
}

// credential identifies the token of a request by its text or its source.
type credential struct {
	sum    [sha256.Size]byte // the key of the cache
	text   string
	source string
}

func tokenCredential(text string) credential {
	return credential{sum: sha256.Sum256([]byte(text)), text: text}
}

func (c credential) find(ctx context.Context, tokens Tokens) (account.Token, error) {
	if c.source != "" {
		return tokens.TokenBySource(ctx, c.source)
	}
	return tokens.Token(ctx, account.HashToken(c.text))
}

// token returns a token from the cache or, if the cache has none, from the store. A cached token
// older than refreshAfter is returned and looked up again in the background, so that a slow store
// does not delay known senders.
func (a *Auth) token(ctx context.Context, cred credential) (account.Token, error) {
	cache := a.cache.Load()
	value, _ := cache.Load(cred.sum)
	cached, _ := value.(*cachedToken)
	now := a.Now()
	if cached == nil || now.Sub(cached.loadedAt) >= maxTokenAge {
		return a.lookUp(ctx, cache, cred)
	}
	if now.Sub(cached.loadedAt) >= refreshAfter && cached.refreshing.CompareAndSwap(false, true) {
		cred.text, cred.source = strings.Clone(cred.text), strings.Clone(cred.source) // the request's buffer is reused
		go func() {
			defer cached.refreshing.Store(false)
			_ = relay.Recovered("lookup of a token", func() error {
				_, err := a.lookUp(context.WithoutCancel(ctx), cache, cred)
				return err
			})
		}()
	}
	return cached.token, nil
}

// lookUp looks up a token in the store and caches it. If Changed was called during the lookup,
// lookUp repeats it.
func (a *Auth) lookUp(ctx context.Context, cache *sync.Map, cred credential) (account.Token, error) {
	token, err := cred.find(ctx, a.Tokens)
	switch {
	case err == nil:
		a.cacheToken(cache, cred.sum, &cachedToken{token: token, bySource: cred.source != "", loadedAt: a.Now()})
		if current := a.cache.Load(); current != cache {
			return a.lookUp(ctx, current, cred)
		}
	case relay.KindOf(err) == relay.KindNotFound:
		if _, existed := cache.LoadAndDelete(cred.sum); existed {
			a.size.Add(-1)
		}
	}
	return token, err
}

func (a *Auth) cacheToken(cache *sync.Map, sum [sha256.Size]byte, cached *cachedToken) {
	if _, existed := cache.Swap(sum, cached); !existed && a.size.Add(1) > maxCachedTokens {
		a.cache.Store(new(sync.Map))
		a.size.Store(0)
	}
}

// AdmitOperator counts a request as a request of the admin API, for surfaces with their own
// authentication.
func AdmitOperator(c *fiber.Ctx) {
	if state := stateOf(c); state != nil {
		state.enter(Operator)
	}
	c.Locals(adminKey{}, true)
}

// IsAdmin reports whether a request has the admin token.
func (a *Auth) IsAdmin(c *fiber.Ctx) bool {
	isAdmin, _ := a.checkAdmin(c, Bearer(c))
	return isAdmin
}

// isAdmin reports whether sum is the hash of the admin token.
func (a *Auth) isAdmin(sum [sha256.Size]byte) bool {
	return a.AdminToken != "" && subtle.ConstantTimeCompare(sum[:], a.adminSum[:]) == 1
}

// checkAdmin reports whether text is the admin token. If too many credentials were wrong,
// checkAdmin does not compare text and returns the time after which to try again.
func (a *Auth) checkAdmin(c *fiber.Ctx, text string) (isAdmin bool, wait time.Duration) {
	if text == "" {
		return false, 0
	}
	attempt := AttemptOf(c, "the administrator", text)
	if wait := a.limiter.Wait(attempt); wait > 0 {
		return false, wait
	}
	if !a.isAdmin(attempt.Sum) {
		a.limiter.RecordFailure(attempt)
		return false, 0
	}
	a.limiter.RecordSuccess(attempt)
	return true, 0
}

// Bearer returns the token of the header Authorization: Bearer.
func Bearer(c *fiber.Ctx) string {
	scheme, token, ok := strings.Cut(c.Get(fiber.HeaderAuthorization), " ")
	if !ok || !strings.EqualFold(scheme, "Bearer") {
		return ""
	}
	return strings.TrimSpace(token)
}

// BearerOrBare returns the token of Authorization, with or without the word Bearer.
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

// XAuthTokenOrBearer returns the token of X-Auth-Token or, if that header is missing, of
// Authorization: Bearer.
func XAuthTokenOrBearer(c *fiber.Ctx) string { return cmp.Or(XAuthToken(c), Bearer(c)) }

// AnyCredential returns the token of Authorization (with or without the word Bearer, or as the
// password of Basic) or of X-Auth-Token, because senders support different headers.
func AnyCredential(c *fiber.Ctx) string {
	if token := BearerOrBare(c); token != "" {
		return token
	}
	if scheme, encoded, _ := strings.Cut(c.Get(fiber.HeaderAuthorization), " "); strings.EqualFold(scheme, "Basic") {
		b, err := base64.StdEncoding.DecodeString(strings.TrimSpace(encoded))
		if _, password, _ := strings.Cut(string(b), ":"); err == nil && password != "" {
			return password
		}
	}
	return XAuthToken(c)
}

// WebhookStyle returns the style of the surfaces for webhooks, carriers and CDRs.
func WebhookStyle() Style { return newStyle(Webhooks, AnyCredential, "Forbidden.") }

// APIStyle returns the style of the REST surfaces. credential returns the text of the token of a
// request.
func APIStyle(credential func(*fiber.Ctx) string) Style {
	return newStyle(API, credential, "This action is unauthorised.")
}

func newStyle(k Kind, credential func(*fiber.Ctx) string, forbidden string) Style {
	refuse := func(status int, message string) fiber.Handler {
		return func(c *fiber.Ctx) error { return Message(c, status, message) }
	}
	return Style{
		Kind: k, Credential: credential,
		Unauthenticated: refuse(fiber.StatusUnauthorized, "Unauthenticated."), Forbidden: refuse(fiber.StatusForbidden, forbidden),
	}
}
