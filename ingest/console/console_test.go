package console

import (
	"bytes"
	"io"
	"net/http"
	"net/http/httptest"
	"regexp"
	"strings"
	"testing"

	"github.com/gofiber/fiber/v2"

	"github.com/penstock/penstock/ingest/openapi"
	"github.com/penstock/penstock/ingest/openapi/contracttest"
)

// assets are the files and what they are served as.
func assets() map[string]string {
	return map[string]string{
		"/console": "text/html; charset=utf-8", "/console/app.js": "text/javascript; charset=utf-8", "/console/style.css": "text/css; charset=utf-8",
	}
}

// ask sends a request without a token; headers are name, value, …
func ask(t *testing.T, method, path string, headers ...string) (*http.Response, []byte) {
	t.Helper()
	app := fiber.New()
	Mount(app)
	req := httptest.NewRequestWithContext(t.Context(), method, path, nil)
	for i := 0; i < len(headers); i += 2 {
		req.Header.Set(headers[i], headers[i+1])
	}
	resp, err := app.Test(req)
	if err != nil {
		t.Fatal(err)
	}
	body, err := io.ReadAll(resp.Body)
	if err != nil {
		t.Fatal(err)
	}
	return resp, body
}

func TestRoutesAreTheContractsOperations(t *testing.T) {
	doc, err := openapi.Load(OpenAPI())
	if err != nil {
		t.Fatal(err)
	}
	app := fiber.New()
	Mount(app)
	for _, difference := range append(contracttest.Routes(app, doc), contracttest.Strict(doc)...) {
		t.Error(difference)
	}
}

func TestEveryFileIsServedOpenlyAndStrictly(t *testing.T) {
	for path, kind := range assets() {
		t.Run(path, func(t *testing.T) {
			resp, body := ask(t, "GET", path)
			if resp.StatusCode != 200 || len(body) == 0 {
				t.Fatalf("%d with %d bytes", resp.StatusCode, len(body))
			}
			for name, want := range map[string]string{
				"Content-Type": kind, "X-Content-Type-Options": "nosniff", "Referrer-Policy": "no-referrer", "Cache-Control": "no-cache",
				"Content-Security-Policy": "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; img-src 'self' data:; " +
					"frame-ancestors 'none'; base-uri 'none'; form-action 'none'",
			} {
				if got := resp.Header.Get(name); got != want {
					t.Errorf("%s: %q, want %q", name, got, want)
				}
			}
			head, none := ask(t, "HEAD", path)
			if head.StatusCode != 200 || len(none) > 0 || head.ContentLength != int64(len(body)) || head.Header.Get("ETag") != resp.Header.Get("ETag") {
				t.Errorf("HEAD: %d, %d bytes of %d, tag %s", head.StatusCode, len(none), head.ContentLength, head.Header.Get("ETag"))
			}
		})
	}
}

func TestAFileThatTheBrowserHasIsNotSentAgain(t *testing.T) {
	tags := map[string]bool{}
	for path := range assets() {
		resp, _ := ask(t, "GET", path)
		tag := resp.Header.Get("ETag")
		if !regexp.MustCompile(`^"[^"]+"$`).MatchString(tag) || tags[tag] {
			t.Errorf("%s: the tag is %q", path, tag)
		}
		tags[tag] = true
		for _, tc := range []struct {
			name, header string
			status       int
		}{
			{"the tag", tag, 304},
			{"the tag among others", `"a", ` + tag, 304},
			{"the tag made weak by a proxy", "W/" + tag, 304},
			{"any", "*", 304},
			{"another version's", `"another"`, 200},
			{"a part of it", strings.Trim(tag, `"`), 200},
		} {
			resp, body := ask(t, "GET", path, "If-None-Match", tc.header)
			if resp.StatusCode != tc.status || (len(body) == 0) != (tc.status == 304) || resp.Header.Get("ETag") != tag || resp.Header.Get("Content-Security-Policy") == "" {
				t.Errorf("%s, %s: %d with %d bytes", path, tc.name, resp.StatusCode, len(body))
			}
		}
	}
}

func TestNothingComesFromElsewhere(t *testing.T) {
	for path := range assets() {
		_, body := ask(t, "GET", path)
		for _, found := range regexp.MustCompile(`(?:https?:)?//[a-z][^\s'"]*`).FindAll(body, -1) {
			if !bytes.Equal(found, []byte("http://www.w3.org/2000/svg")) { // a name, not an address
				t.Errorf("%s names %s", path, found)
			}
		}
		for _, found := range regexp.MustCompile(`@import|url\(`).FindAll(body, -1) {
			t.Errorf("%s has %s", path, found)
		}
	}
	for _, found := range regexp.MustCompile(`(?:src|href)="([^"]*)"`).FindAllSubmatch(page, -1) {
		to := string(found[1])
		if _, served := assets()[to]; !served && to != "/docs" && !strings.HasPrefix(to, "#") && !strings.HasPrefix(to, "data:image/svg+xml,") {
			t.Errorf("the page refers to %s", to)
		}
	}
}

// The policy would stop these; what is not there cannot be let in by a mistake.
func TestTheScriptMakesNoMarkupAndKeepsNothing(t *testing.T) {
	for _, wrong := range []string{
		"innerHTML", "outerHTML", "insertAdjacentHTML", "document.write", "DOMParser", "createContextualFragment", "srcdoc",
		"eval(", "new Function", "localStorage", "indexedDB", "document.cookie", "window.open", ".style.", `"style"`,
	} {
		if bytes.Contains(script, []byte(wrong)) {
			t.Errorf("the script has %s", wrong)
		}
	}
	for _, wrong := range []string{"<style", " style=", " onclick=", " onload=", "javascript:"} {
		if bytes.Contains(page, []byte(wrong)) {
			t.Errorf("the page has %s", wrong)
		}
	}
	if n := bytes.Count(script, []byte("fetch(")); n != 1 {
		t.Errorf("the script fetches in %d places, want 1", n)
	}
}
