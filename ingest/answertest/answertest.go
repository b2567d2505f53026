// Package answertest makes requests of an app in tests, and compares answers whose whole
// is not known or does not matter: a part must be there, or must not be. Each failure
// names the part and shows the text.
package answertest

import (
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/gofiber/fiber/v2"

	"github.com/penstock/penstock/relay/relaytest"
)

// Request returns a request; headers are name, value, ….
func Request(method, target, body string, headers ...string) *http.Request {
	r := httptest.NewRequest(method, target, strings.NewReader(body))
	for i := 0; i+1 < len(headers); i += 2 {
		r.Header.Set(headers[i], headers[i+1])
	}
	return r
}

// Ask makes a request and returns status, body and headers of the answer. It ends the
// test if there is none within two minutes.
func Ask(t testing.TB, app *fiber.App, r *http.Request) (status int, body string, header http.Header) {
	t.Helper()
	resp, err := app.Test(r, 120_000)
	relaytest.NoError(t, err)
	b, err := io.ReadAll(resp.Body)
	relaytest.NoError(t, err, resp.Body.Close())
	return resp.StatusCode, string(b), resp.Header
}

// Begins fails the test, and lets it go on, unless the text has the prefix; what names
// the text.
func Begins(t testing.TB, what, text, prefix string) {
	t.Helper()
	if !strings.HasPrefix(text, prefix) {
		t.Errorf("%s does not begin with %q:\n%s", what, prefix, text)
	}
}

// Contains fails the test, and lets it go on, for every part that the text lacks; what
// names the text.
func Contains(t testing.TB, what, text string, parts ...string) {
	t.Helper()
	for _, part := range parts {
		if !strings.Contains(text, part) {
			t.Errorf("%s lacks %q:\n%s", what, part, text)
		}
	}
}

// Lacks fails the test, and lets it go on, for every part that the text contains; what
// names the text.
func Lacks(t testing.TB, what, text string, parts ...string) {
	t.Helper()
	for _, part := range parts {
		if strings.Contains(text, part) {
			t.Errorf("%s contains %q:\n%s", what, part, text)
		}
	}
}
