package httpd

import (
	"encoding/base64"
	"fmt"
	"testing"
	"time"

	"github.com/gofiber/fiber/v2"

	"github.com/penstock/penstock/ingest/answertest"
	"github.com/penstock/penstock/relay"
	"github.com/penstock/penstock/relay/account"
	"github.com/penstock/penstock/relay/relaytest"
)

// guarded is an app with a route for each style, a token store and a clock.
type guarded struct {
	*store
	app  *fiber.App
	auth *Auth
	now  time.Time
}

func newGuarded(admin string) *guarded {
	g := &guarded{store: newStore(), app: New(Options{Logger: discardLogger()}), now: time.Unix(1_000_000, 0)}
	g.auth = NewAuth(AuthDeps{Tokens: g.store, AdminToken: admin, Now: func() time.Time { g.mu.Lock(); defer g.mu.Unlock(); return g.now }})
	sendAccount := func(c *fiber.Ctx) error { return c.SendString(AccountOf(c).String()) }
	g.app.Get("/hook", g.auth.Require(account.Webhook, WebhookStyle()), sendAccount)
	g.app.Get("/iot", g.auth.Require(account.IoT, APIStyle(BearerOrBare)), sendAccount)
	g.app.Get("/admin", requireAdmin(g.auth), sendAccount)
	return g
}

// status returns the status and the body of the answer to a GET request.
func (g *guarded) status(t *testing.T, path string, headers ...string) string {
	t.Helper()
	status, body, _ := answertest.Send(t, g.app, answertest.Request("GET", path, "", headers...))
	return fmt.Sprint(status, " ", body)
}

func (g *guarded) advance(d time.Duration) { g.change(func(*store) { g.now = g.now.Add(d) }) }

func TestCredentialsOfEachStyle(t *testing.T) {
	basic := func(s string) string { return "Basic " + base64.StdEncoding.EncodeToString([]byte(s)) }
	const (
		unknown   = `401 {"message":"Unauthenticated."}`
		forbidden = `403 {"message":"Forbidden."}`
		denied    = `403 {"message":"This action is unauthorised."}`
	)
	cases := []struct {
		name, path, header, value, want string
	}{
		{"a webhook with Bearer", "/hook", "Authorization", "Bearer hook", "200 7"},
		{"a webhook with bearer in lower case and spaces", "/hook", "Authorization", "bearer  hook ", "200 7"},
		{"a webhook with the bare token", "/hook", "Authorization", "hook", "200 7"},
		{"a webhook with Basic", "/hook", "Authorization", basic("anyone:hook"), "200 7"},
		{"a webhook with X-Auth-Token", "/hook", "X-Auth-Token", "hook", "200 7"},
		{"a webhook without a credential", "/hook", "X-Nothing", "hook", unknown},
		{"a webhook with an unknown token", "/hook", "Authorization", "Bearer hooks", unknown},
		{"a webhook with Basic and no password", "/hook", "Authorization", basic("hook"), unknown},
		{"a webhook with Basic and invalid base64", "/hook", "Authorization", "Basic !", unknown},
		{"a webhook with Bearer and no token", "/hook", "Authorization", "Bearer", unknown},
		{"a webhook with another scheme", "/hook", "Authorization", "Token hook", unknown},
		{"a webhook with a token for the IoT scope", "/hook", "Authorization", "Bearer iot", forbidden},
		{"devices with the bare token", "/iot", "Authorization", "iot", "200 8"},
		{"devices with Bearer", "/iot", "Authorization", "Bearer iot", "200 8"},
		{"devices with X-Auth-Token", "/iot", "X-Auth-Token", "iot", unknown},
		{"devices with Basic", "/iot", "Authorization", basic("x:iot"), unknown},
		{"devices with a token for the webhook scope", "/iot", "Authorization", "hook", denied},
		{"admin with the admin token", "/admin", "Authorization", "Bearer root", "200 0"},
		{"admin with the bare token", "/admin", "Authorization", "root", unknown},
		{"admin with the token of an account", "/admin", "Authorization", "Bearer iot", unknown},
		{"admin without a credential", "/admin", "X-Nothing", "", unknown},
	}
	g := newGuarded("root")
	for _, tc := range cases {
		t.Run(tc.name, func(t *testing.T) {
			if got := g.status(t, tc.path, tc.header, tc.value); got != tc.want {
				t.Errorf("answer = %s, want %s", got, tc.want)
			}
		})
	}
}

func TestWithoutAnAdminTokenAdminAccessIsDisabled(t *testing.T) {
	g := newGuarded("")
	for _, value := range []string{"", "Bearer ", "Bearer x"} {
		if got := g.status(t, "/admin", "Authorization", value); got != `401 {"message":"Unauthenticated."}` {
			t.Errorf("answer to %q = %s, want 401", value, got)
		}
	}
}

// errDown returns the error of a store that is down.
func errDown() error { return relay.Errorf(relay.KindUnavailable, "redis is down") }

func TestAKnownTokenWorksWithoutTheStore(t *testing.T) {
	g := newGuarded("root")
	hookStatus := func() string { return g.status(t, "/hook", "X-Auth-Token", "hook")[:3] }
	if got := hookStatus(); got != "200" {
		t.Fatalf("status = %s, want 200", got)
	}
	g.change(func(s *store) { s.err = errDown() })
	for _, step := range []struct {
		delay time.Duration
		want  string
	}{{0, "200"}, {29 * time.Second, "200"}, {time.Minute, "200"}, {8 * time.Minute, "200"}, {time.Minute, "503"}} {
		g.advance(step.delay)
		if got := hookStatus(); got != step.want {
			t.Errorf("status after another %s = %s, want %s", step.delay, got, step.want)
		}
	}
	if got := g.status(t, "/iot", "Authorization", "iot")[:3]; got != "503" {
		t.Errorf("status of an unknown token = %s, want 503", got)
	}
	g.change(func(s *store) { s.err = nil })
	if got := hookStatus(); got != "200" {
		t.Errorf("status after the outage = %s, want 200", got)
	}
}

func TestAFreshTokenIsNotLookedUpAgain(t *testing.T) {
	g := newGuarded("root")
	for range 5 {
		g.status(t, "/hook", "X-Auth-Token", "hook")
		g.advance(5 * time.Second)
	}
	relaytest.Equal(t, "the number of lookups", g.lookups, 1)
}

func TestARevokedTokenIsRefused(t *testing.T) {
	revoke := func(g *guarded) { g.change(func(s *store) { delete(s.tokens, "hook") }) }
	t.Run("immediately after a call of Changed", func(t *testing.T) {
		g := newGuarded("root")
		g.status(t, "/hook", "X-Auth-Token", "hook")
		revoke(g)
		g.auth.Changed(g.stored())
		if got := g.status(t, "/hook", "X-Auth-Token", "hook")[:3]; got != "401" {
			t.Errorf("status = %s, want 401", got)
		}
	})
	t.Run("after refreshAfter without a call of Changed", func(t *testing.T) {
		g := newGuarded("root")
		g.status(t, "/hook", "X-Auth-Token", "hook")
		revoke(g)
		g.advance(refreshAfter)
		relaytest.Eventually(t, "the token is refused", func() (any, bool) {
			status := g.status(t, "/hook", "X-Auth-Token", "hook")
			return status, status[:3] == "401"
		})
	})
	t.Run("during a lookup", func(t *testing.T) {
		g := newGuarded("root")
		release := make(chan struct{})
		g.change(func(s *store) { s.block = release })
		status := make(chan string)
		go func() { status <- g.status(t, "/hook", "X-Auth-Token", "hook") }()
		relaytest.Eventually(t, "the lookup has started", func() (any, bool) { g.mu.Lock(); defer g.mu.Unlock(); return g.lookups, g.lookups == 1 })
		revoke(g)
		g.change(func(s *store) { s.block = nil })
		g.auth.Changed(g.stored())
		close(release)
		<-status
		if got := g.status(t, "/hook", "X-Auth-Token", "hook")[:3]; got != "401" {
			t.Errorf("status after a lookup from before the revocation = %s, want 401", got)
		}
	})
}

// stored returns the tokens of the store with the hashes of their texts.
func (g *guarded) stored() (tokens []account.Token) {
	g.change(func(s *store) {
		for text, t := range s.tokens {
			t.Hash = account.HashToken(text)
			s.tokens[text] = t
			tokens = append(tokens, t)
		}
	})
	return tokens
}

func TestChangedKeepsUnchangedTokensInTheCache(t *testing.T) {
	hookStatus := func(g *guarded) string { return g.status(t, "/hook", "X-Auth-Token", "hook")[:3] }
	for _, tc := range []struct {
		name   string
		change func(*store)
		want   string
	}{
		{"another token is added", func(s *store) { s.tokens["new"] = account.Token{Account: 9} }, "200"},
		{"another token is revoked", func(s *store) { delete(s.tokens, "iot") }, "200"},
		{"no token has changed", func(*store) {}, "200"},
		{"the token is revoked", func(s *store) { delete(s.tokens, "hook") }, "503"},
		{"the token has other scopes", func(s *store) {
			hook := s.tokens["hook"]
			hook.Scopes = []account.Scope{account.Carrier}
			s.tokens["hook"] = hook
		}, "503"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			g := newGuarded("root")
			g.stored()
			relaytest.Equal(t, "the status before the change", hookStatus(g), "200")
			g.change(tc.change)
			g.auth.Changed(g.stored())
			g.change(func(s *store) { s.err = errDown() })
			relaytest.Equal(t, "the status while the store is down", hookStatus(g), tc.want)
			g.advance(maxTokenAge)
			relaytest.Equal(t, "the status after maxTokenAge", hookStatus(g), "503")
		})
	}
}

// After a change of tokens a lookup in progress is repeated, so that its token is cached, or is
// refused if it was revoked.
func TestALookupDuringAChangeIsRepeated(t *testing.T) {
	for name, tc := range map[string]struct {
		change func(*store)
		want   string
	}{
		"another token is added": {func(s *store) { s.tokens["new"] = account.Token{Account: 9} }, "200"},
		"the token is revoked":   {func(s *store) { delete(s.tokens, "hook") }, "401"},
	} {
		t.Run(name, func(t *testing.T) {
			g := newGuarded("root")
			release := make(chan struct{})
			g.change(func(s *store) { s.block = release })
			status := make(chan string)
			go func() { status <- g.status(t, "/hook", "X-Auth-Token", "hook")[:3] }()
			relaytest.Eventually(t, "the lookup has started", func() (any, bool) { g.mu.Lock(); defer g.mu.Unlock(); return g.lookups, g.lookups == 1 })
			g.change(tc.change)
			g.auth.Changed(g.stored())
			g.change(func(s *store) { s.block = nil })
			close(release)
			relaytest.Equal(t, "the status", <-status, tc.want)
			g.change(func(s *store) { s.err = errDown() })
			if tc.want == "200" {
				relaytest.Equal(t, "the status while the store is down", g.status(t, "/hook", "X-Auth-Token", "hook")[:3], "200")
			}
		})
	}
}

func TestASlowStoreDoesNotDelayKnownSenders(t *testing.T) {
	g := newGuarded("root")
	g.status(t, "/hook", "X-Auth-Token", "hook")
	release := make(chan struct{})
	g.change(func(s *store) { s.block = release })
	g.advance(time.Minute)
	for range 3 {
		if got := g.status(t, "/hook", "X-Auth-Token", "hook"); got != "200 7" {
			t.Errorf("answer = %s, want 200 7", got)
		}
	}
	relaytest.Eventually(t, "the token is looked up again", func() (any, bool) { g.mu.Lock(); defer g.mu.Unlock(); return g.lookups, g.lookups == 2 })
	close(release)
}

// The background lookup has its own goroutine, in which a panic would end the process.
func TestAPanicInABackgroundLookupIsRecovered(t *testing.T) {
	g := newGuarded("root")
	g.status(t, "/hook", "X-Auth-Token", "hook")
	g.change(func(s *store) { s.panics = true })
	g.advance(time.Minute)
	relaytest.Equal(t, "the answer during the lookup", g.status(t, "/hook", "X-Auth-Token", "hook"), "200 7")
	relaytest.Eventually(t, "the token is looked up again", func() (any, bool) {
		g.status(t, "/hook", "X-Auth-Token", "hook")
		g.mu.Lock()
		defer g.mu.Unlock()
		return g.lookups, g.lookups > 2
	})
}

func TestTheTokenCacheIsBounded(t *testing.T) {
	g := newGuarded("root")
	oldCache := g.auth.cache.Load()
	for i := range maxCachedTokens + 1 {
		g.auth.cacheToken(oldCache, [32]byte{byte(i), byte(i >> 8), byte(i >> 16)}, &cachedToken{})
	}
	if g.auth.cache.Load() == oldCache {
		t.Error("the full cache is still in use")
	}
	if n := g.auth.size.Load(); n > 1 {
		t.Errorf("cached tokens = %d, want at most 1", n)
	}
}
