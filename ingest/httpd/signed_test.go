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

// newSigned returns an app on which requests are signed by the secret in the header X-Signed.
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
		Logger: discardLogger(),
	}), func(c *fiber.Ctx) error { return c.SendString(AccountOf(c).String()) })
	return g
}

func TestSourcesRequireASignature(t *testing.T) {
	const unknown = `401 {"message":"Unauthenticated."}`
	cases := []struct {
		name, source string
		headers      []string
		want         string
	}{
		{"a source with a right signature", "hq", []string{"X-Signed", "s3cret"}, "200 9"},
		{"a source without a signature", "hq", nil, unknown},
		{"a source with a wrong signature", "hq", []string{"X-Signed", "secret"}, unknown},
		{"a source of a token without a secret", "bare", nil, unknown},
		{"a source of a token without a secret, with a signature", "bare", []string{"X-Signed", "x"}, unknown},
		{"an unknown source", "hr", []string{"X-Signed", "s3cret"}, unknown},
		{"no source", "", []string{"X-Signed", "s3cret"}, unknown},
		{"a source of a token without the scope", "narrow", []string{"X-Signed", "s3cret"}, `403 {"message":"Forbidden."}`},
		{"a signing token without a signature", "hq", []string{"X-Auth-Token", "signing"}, "200 9"},
		{"a signing token with a wrong signature", "", []string{"X-Auth-Token", "signing", "X-Signed", "x"}, unknown},
		{"a token without a secret, with a signature", "", []string{"X-Auth-Token", "plain", "X-Signed", "x"}, "200 10"},
		{"a token with the source of another token", "hq", []string{"X-Auth-Token", "plain"}, "200 10"},
		{"an unknown token with a valid signature", "hq", []string{"X-Auth-Token", "no", "X-Signed", "s3cret"}, unknown},
	}
	g := newSigned()
	for _, tc := range cases {
		t.Run(tc.name, func(t *testing.T) {
			if got := g.status(t, "/signed/"+tc.source, tc.headers...); got != tc.want {
				t.Errorf("answer = %s, want %s", got, tc.want)
			}
		})
	}
}

func TestAKnownSourceWorksWithoutTheStore(t *testing.T) {
	g := newSigned()
	status := func() string { return g.status(t, "/signed/hq", "X-Signed", "s3cret")[:3] }
	if got := status(); got != "200" {
		t.Fatalf("status = %s, want 200", got)
	}
	g.change(func(s *store) { s.err = errDown() })
	g.advance(9 * time.Minute)
	if got := status(); got != "200" {
		t.Errorf("status of a cached source = %s, want 200", got)
	}
	if got := g.status(t, "/signed/bare", "X-Signed", "s3cret"); !strings.HasPrefix(got, "503") {
		t.Errorf("answer to an unknown source = %s, want 503", got)
	}
	if got := g.status(t, "/signed/x", "X-Auth-Token", "hq"); !strings.HasPrefix(got, "503") {
		t.Errorf("answer to a source as a token = %s, want 503", got)
	}
	g.advance(2 * time.Minute)
	if got := status(); got != "503" {
		t.Errorf("status after maxTokenAge = %s, want 503", got)
	}
}

// All wrong credentials get the same answer and count as guesses.
func TestWrongCredentialsBeforeTheInventoryIsApplied(t *testing.T) {
	g := newSigned()
	var undeclared atomic.Bool
	g.auth.AttemptLimiter().InventoryPending = undeclared.Load
	undeclared.Store(true)
	status := func(path string, headers ...string) string { return g.status(t, path, headers...)[:3] }
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
		if got := status(tc.path, tc.headers...); got != tc.want {
			t.Errorf("%s: status = %s, want %s", tc.name, got, tc.want)
		}
	}
	for i := range guessesPerAddress {
		status("/hook", "X-Auth-Token", fmt.Sprint("guess", i))
	}
	if got := status("/hook", "X-Auth-Token", "declared"); got != "429" {
		t.Errorf("status after too many guesses = %s, want 429", got)
	}

	undeclared.Store(false)
	g.change(func(s *store) {
		s.tokens["declared"] = account.Token{Account: 12, Scopes: []account.Scope{account.Webhook}}
	})
	if got := status("/hook", "X-Auth-Token", "declared"); got != "200" {
		t.Errorf("status of a declared token = %s, want 200", got)
	}
	if got := status("/hook", "X-Auth-Token", "unknown"); got != "401" {
		t.Errorf("status of an unknown token = %s, want 401", got)
	}
}
