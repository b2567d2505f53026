package httpd

import (
	"errors"
	"fmt"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/gofiber/fiber/v2"

	"github.com/penstock/penstock/relay/account"
)

// newSigned is an app whose senders sign with the header X-Signed: the secret.
func newSigned() *guarded {
	g := newGuarded("")
	g.tokens["signing"] = account.Token{Account: 9, Scopes: []account.Scope{account.Webhook}, Secret: "s3cret", Source: "hq"}
	g.tokens["plain"] = account.Token{Account: 10, Scopes: []account.Scope{account.Webhook}, Source: "bare"}
	g.tokens["narrow"] = account.Token{Account: 11, Scopes: account.DefaultScopes(), Secret: "s3cret", Source: "narrow"}
	g.app.Get("/signed/*", g.auth.RequireSigned(account.Webhook, WebhookStyle(), Signature{
		Source: func(c *fiber.Ctx) string { return c.Params("*") },
		Verify: func(c *fiber.Ctx, secret string) error {
			switch c.Get("X-Signed") {
			case "":
				return fmt.Errorf("test: %w", ErrUnsigned)
			case secret:
				return nil
			}
			return errors.New("wrong")
		},
		Logger: quiet(),
	}), func(c *fiber.Ctx) error { return c.SendString(AccountOf(c).String()) })
	return g
}

func TestSignatures(t *testing.T) {
	const unknown = `401 {"message":"Unauthenticated."}`
	cases := []struct {
		name, source string
		headers      []string
		want         string
	}{
		{"a source and its signature", "hq", []string{"X-Signed", "s3cret"}, "200 9"},
		{"a source alone", "hq", nil, unknown},
		{"a source with a wrong signature", "hq", []string{"X-Signed", "secret"}, unknown},
		{"a source whose token has no secret", "bare", nil, unknown},
		{"a source whose token has no secret, with a signature of nothing", "bare", []string{"X-Signed", "x"}, unknown},
		{"an unknown source", "hr", []string{"X-Signed", "s3cret"}, unknown},
		{"no source", "", []string{"X-Signed", "s3cret"}, unknown},
		{"a source of a token without the scope", "narrow", []string{"X-Signed", "s3cret"}, `403 {"message":"Forbidden."}`},
		{"a token's text without a signature", "hq", []string{"X-Auth-Token", "signing"}, "200 9"},
		{"a token's text with a wrong signature", "", []string{"X-Auth-Token", "signing", "X-Signed", "x"}, unknown},
		{"a token's text with a signature nobody can check", "", []string{"X-Auth-Token", "plain", "X-Signed", "x"}, "200 10"},
		{"a token's text before another's source", "hq", []string{"X-Auth-Token", "plain"}, "200 10"},
		{"an unknown text before a right signature", "hq", []string{"X-Auth-Token", "no", "X-Signed", "s3cret"}, unknown},
	}
	g := newSigned()
	for _, tc := range cases {
		t.Run(tc.name, func(t *testing.T) {
			if got := g.status(t, "/signed/"+tc.source, tc.headers...); got != tc.want {
				t.Errorf("%s, want %s", got, tc.want)
			}
		})
	}
}

func TestAKnownSourceWorksWithoutTheStore(t *testing.T) {
	g := newSigned()
	ask := func() string { return g.status(t, "/signed/hq", "X-Signed", "s3cret")[:3] }
	if got := ask(); got != "200" {
		t.Fatal(got)
	}
	g.change(func(s *store) { s.down = down() })
	g.pass(9 * time.Minute)
	if got := ask(); got != "200" {
		t.Errorf("remembered: %s", got)
	}
	if got := g.status(t, "/signed/bare", "X-Signed", "s3cret"); !strings.HasPrefix(got, "503") {
		t.Errorf("one that is not known: %s", got)
	}
	if got := g.status(t, "/signed/x", "X-Auth-Token", "hq"); !strings.HasPrefix(got, "503") {
		t.Errorf("a source is remembered as a source only: %s", got)
	}
	g.pass(2 * time.Minute)
	if got := ask(); got != "503" {
		t.Errorf("after ten minutes: %s", got)
	}
}

// While an inventory waits, all wrong credentials get one answer, and count as guesses.
func TestWrongCredentialsBeforeTheInventoryIsApplied(t *testing.T) {
	g := newSigned()
	var undeclared atomic.Bool
	g.auth.Guesses().Undeclared = undeclared.Load
	undeclared.Store(true)
	ask := func(path string, headers ...string) string { return g.status(t, path, headers...)[:3] }
	for _, tc := range []struct {
		name, path string
		headers    []string
		want       string
	}{
		{"an unknown token", "/hook", []string{"X-Auth-Token", "unknown"}, "503"},
		{"an unknown source", "/signed/unknown", []string{"X-Signed", "s3cret"}, "503"},
		{"a known source with a wrong signature", "/signed/hq", []string{"X-Signed", "wrong"}, "503"},
		{"a known token", "/hook", []string{"X-Auth-Token", "hook"}, "200"},
	} {
		if got := ask(tc.path, tc.headers...); got != tc.want {
			t.Errorf("%s: %s, want %s", tc.name, got, tc.want)
		}
	}
	for i := range guessesOfAddress {
		ask("/hook", "X-Auth-Token", fmt.Sprint("guess", i))
	}
	if got := ask("/hook", "X-Auth-Token", "declared"); got != "429" {
		t.Errorf("a wrong token after too many: %s", got)
	}

	undeclared.Store(false)
	g.change(func(s *store) {
		s.tokens["declared"] = account.Token{Account: 12, Scopes: []account.Scope{account.Webhook}}
	})
	if got := ask("/hook", "X-Auth-Token", "declared"); got != "200" {
		t.Errorf("a token that the inventory has declared: %s", got)
	}
	if got := ask("/hook", "X-Auth-Token", "unknown"); got != "401" {
		t.Errorf("an unknown token afterwards: %s", got)
	}
}
