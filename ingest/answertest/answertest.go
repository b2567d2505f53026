// Package answertest sends requests to an app in tests and checks which parts an answer
// contains. Each failure names the part and prints the whole text.
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

// Request returns a request; headers alternates names and values.
func Request(method, target, body string, headers ...string) *http.Request {
	r := httptest.NewRequest(method, target, strings.NewReader(body))
	for i := 0; i+1 < len(headers); i += 2 {
		r.Header.Set(headers[i], headers[i+1])
	}
	return r
}

// Send sends a request and returns status, body and headers of the answer. It ends the
// test if no answer arrives within two minutes.
func Send(t testing.TB, app *fiber.App, r *http.Request) (status int, body string, header http.Header) {
	t.Helper()
	resp, err := app.Test(r, 120_000)
	relaytest.NoError(t, err)
	b, err := io.ReadAll(resp.Body)
	relaytest.NoError(t, err, resp.Body.Close())
	return resp.StatusCode, string(b), resp.Header
}

// HasPrefix reports an error unless the text has the prefix. The label names the text.
func HasPrefix(t testing.TB, label, text, prefix string) {
	t.Helper()
	if !strings.HasPrefix(text, prefix) {
		t.Errorf("%s does not begin with %q:\n%s", label, prefix, text)
	}
}

// Contains reports an error for every part that the text lacks. The label names the text.
func Contains(t testing.TB, label, text string, parts ...string) {
	t.Helper()
	for _, part := range parts {
		if !strings.Contains(text, part) {
			t.Errorf("%s lacks %q:\n%s", label, part, text)
		}
	}
}

// NotContains reports an error for every part that the text contains. The label names the text.
func NotContains(t testing.TB, label, text string, parts ...string) {
	t.Helper()
	for _, part := range parts {
		if strings.Contains(text, part) {
			t.Errorf("%s contains %q:\n%s", label, part, text)
		}
	}
}
