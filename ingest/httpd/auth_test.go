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

// guarded is an app with a path for each style, over a store and a clock.
type guarded struct {
	*store
	app  *fiber.App
	auth *Auth
	now  time.Time
}

func newGuarded(admin string) *guarded {
	g := &guarded{store: newStore(), app: New(Options{Logger: quiet()}), now: time.Unix(1_000_000, 0)}
	g.auth = NewAuth(AuthDeps{Tokens: g.store, AdminToken: admin, Now: func() time.Time { g.mu.Lock(); defer g.mu.Unlock(); return g.now }})
	who := func(c *fiber.Ctx) error { return c.SendString(AccountOf(c).String()) }
	g.app.Get("/hook", g.auth.Require(account.Webhook, WebhookStyle()), who)
	g.app.Get("/iot", g.auth.Require(account.IoT, APIStyle(BearerOrBare)), who)
	g.app.Get("/admin", requireAdmin(g.auth), who)
	return g
}

func (g *guarded) status(t *testing.T, path string, headers ...string) string {
	t.Helper()
	status, body, _ := answertest.Ask(t, g.app, answertest.Request("GET", path, "", headers...))
	return fmt.Sprint(status, " ", body)
}

func (g *guarded) pass(d time.Duration) { g.change(func(*store) { g.now = g.now.Add(d) }) }

func TestCredentials(t *testing.T) {
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
		{"a webhook with bearer in lower case and blanks", "/hook", "Authorization", "bearer  hook ", "200 7"},
		{"a webhook with the bare token", "/hook", "Authorization", "hook", "200 7"},
		{"a webhook with Basic", "/hook", "Authorization", basic("anyone:hook"), "200 7"},
		{"a webhook with X-Auth-Token", "/hook", "X-Auth-Token", "hook", "200 7"},
		{"a webhook with nothing", "/hook", "X-Nothing", "hook", unknown},
		{"a webhook with an unknown token", "/hook", "Authorization", "Bearer hooks", unknown},
		{"a webhook with Basic and no password", "/hook", "Authorization", basic("hook"), unknown},
		{"a webhook with Basic that is no base64", "/hook", "Authorization", "Basic !", unknown},
		{"a webhook with Bearer and no token", "/hook", "Authorization", "Bearer", unknown},
		{"a webhook with another scheme", "/hook", "Authorization", "Token hook", unknown},
		{"a webhook with a customer's token", "/hook", "Authorization", "Bearer iot", forbidden},
		{"devices with the bare token", "/iot", "Authorization", "iot", "200 8"},
		{"devices with Bearer", "/iot", "Authorization", "Bearer iot", "200 8"},
		{"devices with X-Auth-Token", "/iot", "X-Auth-Token", "iot", unknown},
		{"devices with Basic", "/iot", "Authorization", basic("x:iot"), unknown},
		{"devices with a webhook's token", "/iot", "Authorization", "hook", denied},
		{"the administrator", "/admin", "Authorization", "Bearer root", "200 0"},
		{"the administrator's bare token", "/admin", "Authorization", "root", unknown},
		{"a customer at the administrator's", "/admin", "Authorization", "Bearer iot", unknown},
		{"nobody at the administrator's", "/admin", "X-Nothing", "", unknown},
	}
	g := newGuarded("root")
	for _, tc := range cases {
		t.Run(tc.name, func(t *testing.T) {
			if got := g.status(t, tc.path, tc.header, tc.value); got != tc.want {
				t.Errorf("%s, want %s", got, tc.want)
			}
		})
	}
}

func TestWithoutAnAdminTokenAdminAccessIsDisabled(t *testing.T) {
	g := newGuarded("")
	for _, value := range []string{"", "Bearer ", "Bearer x"} {
		if got := g.status(t, "/admin", "Authorization", value); got != `401 {"message":"Unauthenticated."}` {
			t.Errorf("%q: %s", value, got)
		}
	}
}

func down() error { return relay.Errorf(relay.KindUnavailable, "redis is down") }

func TestAKnownTokenWorksWithoutTheStore(t *testing.T) {
	g := newGuarded("root")
	hook := func() string { return g.status(t, "/hook", "X-Auth-Token", "hook")[:3] }
	if got := hook(); got != "200" {
		t.Fatal(got)
	}
	g.change(func(s *store) { s.down = down() })
	for _, step := range []struct {
		after time.Duration
		want  string
	}{{0, "200"}, {29 * time.Second, "200"}, {time.Minute, "200"}, {8 * time.Minute, "200"}, {time.Minute, "503"}} {
		g.pass(step.after)
		if got := hook(); got != step.want {
			t.Errorf("%s later: %s, want %s", step.after, got, step.want)
		}
	}
	if got := g.status(t, "/iot", "Authorization", "iot")[:3]; got != "503" {
		t.Errorf("one that is not known: %s", got)
	}
	g.change(func(s *store) { s.down = nil })
	if got := hook(); got != "200" {
		t.Errorf("afterwards: %s", got)
	}
}

func TestAFreshTokenIsNotLookedUpAgain(t *testing.T) {
	g := newGuarded("root")
	for range 5 {
		g.status(t, "/hook", "X-Auth-Token", "hook")
		g.pass(5 * time.Second)
	}
	if g.asked != 1 {
		t.Errorf("asked %d times", g.asked)
	}
}

func TestARevokedTokenIsRefused(t *testing.T) {
	revoke := func(g *guarded) { g.change(func(s *store) { delete(s.tokens, "hook") }) }
	t.Run("at once when the revocation is heard of", func(t *testing.T) {
		g := newGuarded("root")
		g.status(t, "/hook", "X-Auth-Token", "hook")
		revoke(g)
		g.auth.Changed(g.stored())
		if got := g.status(t, "/hook", "X-Auth-Token", "hook")[:3]; got != "401" {
			t.Error(got)
		}
	})
	t.Run("soon when it is not", func(t *testing.T) {
		g := newGuarded("root")
		g.status(t, "/hook", "X-Auth-Token", "hook")
		revoke(g)
		g.pass(refreshAfter)
		relaytest.Eventually(t, "the token is refused", func() (any, bool) {
			status := g.status(t, "/hook", "X-Auth-Token", "hook")
			return status, status[:3] == "401"
		})
	})
	t.Run("although it was being asked for meanwhile", func(t *testing.T) {
		g := newGuarded("root")
		hang := make(chan struct{})
		g.change(func(s *store) { s.hang = hang })
		first := make(chan string)
		go func() { first <- g.status(t, "/hook", "X-Auth-Token", "hook") }()
		relaytest.Eventually(t, "the store is asked once", func() (any, bool) { g.mu.Lock(); defer g.mu.Unlock(); return g.asked, g.asked == 1 })
		revoke(g)
		g.change(func(s *store) { s.hang = nil })
		g.auth.Changed(g.stored())
		close(hang)
		<-first
		if got := g.status(t, "/hook", "X-Auth-Token", "hook")[:3]; got != "401" {
			t.Errorf("what was asked before the revocation is remembered: %s", got)
		}
	})
}

// stored lists the tokens of the store, each with the hash of its text.
func (g *guarded) stored() (all []account.Token) {
	g.change(func(s *store) {
		for text, t := range s.tokens {
			t.Hash = account.HashToken(text)
			s.tokens[text] = t
			all = append(all, t)
		}
	})
	return all
}

func TestAKnownTokenWorksWithoutTheStoreAfterAnotherHasChanged(t *testing.T) {
	ask := func(g *guarded) string { return g.status(t, "/hook", "X-Auth-Token", "hook")[:3] }
	for _, tc := range []struct {
		name   string
		change func(*store)
		want   string
	}{
		{"another token is added", func(s *store) { s.tokens["new"] = account.Token{Account: 9} }, "200"},
		{"another token is revoked", func(s *store) { delete(s.tokens, "iot") }, "200"},
		{"nothing has changed", func(*store) {}, "200"},
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
			relaytest.Equal(t, "the answer before", ask(g), "200")
			g.change(tc.change)
			g.auth.Changed(g.stored())
			g.change(func(s *store) { s.down = down() })
			relaytest.Equal(t, "the answer while the store is down", ask(g), tc.want)
			g.pass(maxTokenAge)
			relaytest.Equal(t, "the answer after ten minutes", ask(g), "503")
		})
	}
}

// A sender whose only lookup was under way when tokens changed is known, too: the lookup is
// repeated. If its token was revoked, the repetition finds that.
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
			hang := make(chan struct{})
			g.change(func(s *store) { s.hang = hang })
			answer := make(chan string)
			go func() { answer <- g.status(t, "/hook", "X-Auth-Token", "hook")[:3] }()
			relaytest.Eventually(t, "the lookup is under way", func() (any, bool) { g.mu.Lock(); defer g.mu.Unlock(); return g.asked, g.asked == 1 })
			g.change(tc.change)
			g.auth.Changed(g.stored())
			g.change(func(s *store) { s.hang = nil })
			close(hang)
			relaytest.Equal(t, "the answer", <-answer, tc.want)
			g.change(func(s *store) { s.down = down() })
			if tc.want == "200" {
				relaytest.Equal(t, "the answer while the store is down", g.status(t, "/hook", "X-Auth-Token", "hook")[:3], "200")
			}
		})
	}
}

func TestAStoreThatHangsDelaysNoKnownSender(t *testing.T) {
	g := newGuarded("root")
	g.status(t, "/hook", "X-Auth-Token", "hook")
	hang := make(chan struct{})
	g.change(func(s *store) { s.hang = hang })
	g.pass(time.Minute)
	for range 3 {
		if got := g.status(t, "/hook", "X-Auth-Token", "hook"); got != "200 7" {
			t.Error(got)
		}
	}
	relaytest.Eventually(t, "the store is asked again", func() (any, bool) { g.mu.Lock(); defer g.mu.Unlock(); return g.asked, g.asked == 2 })
	close(hang)
}

// The lookup has a goroutine of its own, whose panic would end the process.
func TestAPanicInTheBackgroundLookupOfATokenEndsNothing(t *testing.T) {
	g := newGuarded("root")
	g.status(t, "/hook", "X-Auth-Token", "hook")
	g.change(func(s *store) { s.panics = true })
	g.pass(time.Minute)
	relaytest.Equal(t, "the answer while it is looked up", g.status(t, "/hook", "X-Auth-Token", "hook"), "200 7")
	relaytest.Eventually(t, "the next request looks it up again", func() (any, bool) {
		g.status(t, "/hook", "X-Auth-Token", "hook")
		g.mu.Lock()
		defer g.mu.Unlock()
		return g.asked, g.asked > 2
	})
}

func TestMemoryIsBounded(t *testing.T) {
	g := newGuarded("root")
	known := g.auth.cache.Load()
	for i := range maxCachedTokens + 1 {
		g.auth.cacheToken(known, [32]byte{byte(i), byte(i >> 8), byte(i >> 16)}, &cachedToken{})
	}
	if g.auth.cache.Load() == known {
		t.Error("the full cache is still in use")
	}
	if n := g.auth.size.Load(); n > 1 {
		t.Errorf("%d tokens are cached, want 1 at most", n)
	}
}
