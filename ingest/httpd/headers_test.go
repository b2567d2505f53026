package httpd

import (
	"strings"
	"testing"

	"github.com/gofiber/fiber/v2"

	"github.com/penstock/penstock/ingest/answertest"
	"github.com/penstock/penstock/relay/relaytest"
)

func TestEveryAnswerHasTheDefaultHeaders(t *testing.T) {
	app := New(Options{Logger: discardLogger()})
	app.Get("/data", func(c *fiber.Ctx) error { return c.JSON(fiber.Map{"pin": "1234"}) })
	app.Get("/page", func(c *fiber.Ctx) error {
		c.Set(fiber.HeaderCacheControl, "no-cache")
		return c.SendString("page")
	})
	app.Get("/panic", func(*fiber.Ctx) error { panic("failed") })
	app.Use(NotFound)
	for _, tc := range []struct{ name, method, path, cache string }{
		{"data of an account", "GET", "/data", "no-store"},
		{"a page with its own Cache-Control", "GET", "/page", "no-cache"},
		{"an error", "GET", "/panic", "no-store"},
		{"an unknown path", "GET", "/nowhere", "no-store"},
		{"an unknown method", "BREW", "/data", "no-store"},
	} {
		_, _, header := answertest.Send(t, app, answertest.Request(tc.method, tc.path, ""))
		relaytest.Equal(t, tc.name+": Cache-Control", header.Get("Cache-Control"), tc.cache)
		relaytest.Equal(t, tc.name+": X-Content-Type-Options", header.Get("X-Content-Type-Options"), "nosniff")
		relaytest.Equal(t, tc.name+": Strict-Transport-Security", header.Get("Strict-Transport-Security"), "")
	}
}

func TestAnswersOverTLSRequireTLS(t *testing.T) {
	app := New(Options{Logger: discardLogger(), TLS: true})
	app.Use(NotFound)
	_, _, header := answertest.Send(t, app, answertest.Request("GET", "/nowhere", ""))
	relaytest.Equal(t, "Strict-Transport-Security", header.Get("Strict-Transport-Security"), "max-age=31536000")
}

func TestTheAnswerToAnInvalidHeadHasTheDefaultHeaders(t *testing.T) {
	conn := dial(t, serve(t, New(Options{Logger: discardLogger(), TLS: true})))
	write(t, conn, "GET\r\n\r\n")
	head, _, _ := strings.Cut(readAll(t, conn), "\r\n\r\n")
	answertest.Contains(t, "the head of the answer", head, "Cache-Control: no-store", "X-Content-Type-Options: nosniff", "Strict-Transport-Security: max-age=")
}
