package console

import (
	"bytes"
	"io"
	"maps"
	"net/http"
	"net/http/httptest"
	"path"
	"regexp"
	"slices"
	"strings"
	"testing"
	"unicode/utf8"

	"github.com/gofiber/fiber/v2"

	"github.com/penstock/penstock/ingest/httpd"
	"github.com/penstock/penstock/ingest/openapi/contracttest"
	"github.com/penstock/penstock/relay/relaytest"
)

// assets are the files and what they are served as.
func assets() map[string]string {
	served := map[string]string{"/console": "text/html; charset=utf-8"}
	for name, f := range loadFiles() {
		if name != "console.html" {
			served["/console/"+name] = f.contentType
		}
	}
	return served
}

// ours are the files that we wrote, as one text for each ending.
func ours(ending string) []byte {
	var out bytes.Buffer
	files := loadFiles()
	for _, name := range slices.Sorted(maps.Keys(files)) {
		if !strings.HasPrefix(name, "uplot-") && strings.HasSuffix(name, ending) {
			out.WriteString("\n// " + name + "\n")
			out.Write(files[name].content)
		}
	}
	return out.Bytes()
}

// ask sends a request without a token; headers are name, value, …
func ask(t *testing.T, method, path string, headers ...string) (*http.Response, []byte) {
	t.Helper()
	app := httpd.New(httpd.Options{})
	Mount(app)
	req := httptest.NewRequestWithContext(t.Context(), method, path, nil)
	for i := 0; i < len(headers); i += 2 {
		req.Header.Set(headers[i], headers[i+1])
	}
	resp, err := app.Test(req)
	relaytest.NoError(t, err)
	body, err := io.ReadAll(resp.Body)
	relaytest.NoError(t, err)
	return resp, body
}

func TestRoutesAreOperationsOfTheContract(t *testing.T) {
	contracttest.CheckSurface(t, OpenAPI(), func(app *fiber.App, _ *httpd.Auth) { Mount(app) })
}

func TestEveryFileIsServedOpenlyAndStrictly(t *testing.T) {
	for path, kind := range assets() {
		t.Run(path, func(t *testing.T) {
			resp, body := ask(t, "GET", path)
			relaytest.Equal(t, "the status", resp.StatusCode, 200)
			if len(body) == 0 {
				t.Fatal("the file is empty")
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
			relaytest.Equal(t, "the status of HEAD", head.StatusCode, 200)
			relaytest.Equal(t, "the bytes that HEAD returns", len(none), 0)
			relaytest.Equal(t, "the length that HEAD names", head.ContentLength, int64(len(body)))
			relaytest.Equal(t, "the tag that HEAD names", head.Header.Get("ETag"), resp.Header.Get("ETag"))
		})
	}
}

func TestTheRootLeadsToTheConsole(t *testing.T) {
	resp, _ := ask(t, "GET", "/")
	relaytest.Equal(t, "the status", resp.StatusCode, 302)
	relaytest.Equal(t, "the address", resp.Header.Get("Location"), "/console")
}

func TestACachedFileIsAnswered304(t *testing.T) {
	tags := map[string]bool{}
	for path := range assets() {
		resp, _ := ask(t, "GET", path)
		tag := resp.Header.Get("ETag")
		if !regexp.MustCompile(`^"[^"]+"$`).MatchString(tag) {
			t.Errorf("%s: the tag %q is no strong tag", path, tag)
		}
		if tags[tag] {
			t.Errorf("%s: the tag %q is that of another file", path, tag)
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
			what := path + ", " + tc.name
			relaytest.Equal(t, what+": the status", resp.StatusCode, tc.status)
			relaytest.Equal(t, what+": there is no body", len(body) == 0, tc.status == 304)
			relaytest.Equal(t, what+": the tag", resp.Header.Get("ETag"), tag)
			if resp.Header.Get("Content-Security-Policy") == "" {
				t.Errorf("%s: no Content-Security-Policy", what)
			}
		}
	}
}

// importsOf returns the modules that each of our modules imports, as they are called below web.
// Those imported when they are needed are included only if lazy is true.
func importsOf(lazy bool) map[string][]string {
	static, dynamic := regexp.MustCompile(`(?s)\bimport (?:[^"';]* from )?"([^"]+)"`), regexp.MustCompile(`\bimport\("([^"]+)"\)`)
	imports := make(map[string][]string)
	for name, f := range loadFiles() {
		if !strings.HasSuffix(name, ".js") || strings.HasPrefix(name, "uplot-") {
			continue
		}
		found := static.FindAllSubmatch(f.content, -1)
		if lazy {
			found = append(found, dynamic.FindAllSubmatch(f.content, -1)...)
		}
		for _, m := range found {
			imports[name] = append(imports[name], path.Join(path.Dir(name), string(m[1])))
		}
	}
	return imports
}

// Every module is served under the name by which another imports it, or the page
// stays empty.
func TestEveryImportIsServed(t *testing.T) {
	n := 0
	for name, imported := range importsOf(true) {
		for _, to := range imported {
			n++
			if kind := assets()["/console/"+to]; !strings.HasPrefix(kind, "text/javascript") {
				t.Errorf("%s imports %s, which is served as %q", name, to, kind)
			}
		}
	}
	if n < 100 {
		t.Errorf("only %d imports were found", n)
	}
}

func TestModulesDoNotImportEachOtherInACircle(t *testing.T) {
	imports, done := importsOf(false), make(map[string]bool)
	var visit func(name string, trail []string)
	visit = func(name string, trail []string) {
		if slices.Contains(trail, name) {
			t.Errorf("a circle of imports: %s", strings.Join(append(trail, name), " imports "))
			return
		}
		if done[name] {
			return
		}
		for _, to := range imports[name] {
			visit(to, append(slices.Clone(trail), name))
		}
		done[name] = true
	}
	for name := range imports {
		visit(name, nil)
	}
}

func TestLinesHaveAtMost120Columns(t *testing.T) {
	for name, f := range loadFiles() {
		if strings.HasPrefix(name, "uplot-") {
			continue
		}
		for i, line := range strings.Split(string(f.content), "\n") {
			if n := utf8.RuneCountInString(line); n > 120 {
				t.Errorf("%s:%d has %d columns", name, i+1, n)
			}
		}
	}
}

// A reader of the console clicks; what curl needs is in the API's documentation.
func TestTextsNameNoMethodAndNoPath(t *testing.T) {
	sends := regexp.MustCompile(`["'\x60][^"'\x60\n]*\b(?:GET|POST|PUT|PATCH|DELETE) /?[a-z{][^"'\x60\n]*["'\x60]|would be here`)
	for name, f := range loadFiles() {
		if strings.HasPrefix(name, "uplot-") || name == "core/api.js" || name == "core/snippets.js" {
			continue
		}
		for _, found := range sends.FindAll(f.content, -1) {
			t.Errorf("%s: %s", name, found)
		}
	}
}

func TestUnknownFilesAreLeftToTheNotFoundHandler(t *testing.T) {
	for _, path := range []string{"/console/nothing.js", "/console/core/nothing.js", "/console/console_test.go", "/console/..%2froutes.go", "/console/core/..%2fapp.js"} {
		resp, _ := ask(t, "GET", path)
		relaytest.Equal(t, path+": the status", resp.StatusCode, 404)
		relaytest.Equal(t, path+": the tag", resp.Header.Get("ETag"), "")
	}
}

// The library is the published one, with its licence.
func TestTheChartLibraryIsAsPublished(t *testing.T) {
	for name, want := range map[string]string{"uPlot.esm.js": "(v1.6.32)", "LICENSE": "The MIT License", "uPlot.min.css": ".uplot"} {
		f := loadFiles()["uplot-1.6.32/"+name]
		if f == nil || !bytes.Contains(f.content, []byte(want)) {
			t.Errorf("%s does not hold %q", name, want)
		}
	}
	if bytes.Contains(loadFiles()["uplot-1.6.32/uPlot.esm.js"].content, []byte("innerHTML")) {
		t.Error("the library makes markup")
	}
}

func TestNothingComesFromElsewhere(t *testing.T) {
	page := loadFiles()["console.html"].content
	for _, body := range [][]byte{page, ours(".js"), ours(".css")} {
		for _, found := range regexp.MustCompile(`(?:https?:)?//[a-z][^\s'"]*`).FindAll(body, -1) {
			if !bytes.Equal(found, []byte("http://www.w3.org/2000/svg")) { // a name, not an address
				t.Errorf("a file names %s", found)
			}
		}
	}
	for path := range assets() {
		_, body := ask(t, "GET", path)
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
func TestTheScriptMakesNoMarkupAndKeepsNoSecret(t *testing.T) {
	script := ours(".js")
	for _, wrong := range []string{
		"innerHTML", "outerHTML", "insertAdjacentHTML", "document.write", "DOMParser", "createContextualFragment", "srcdoc",
		"eval(", "new Function", "indexedDB", "document.cookie", "window.open", ".style.", `"style"`,
	} {
		if bytes.Contains(script, []byte(wrong)) {
			t.Errorf("the script has %s", wrong)
		}
	}
	// What outlives the tab is the mark that there may be a session, and no secret.
	if all, marks := bytes.Count(script, []byte("localStorage")), regexp.MustCompile(`localStorage\.(getItem|removeItem)\(mayHaveSession\)|localStorage\.setItem\(mayHaveSession, "1"\)`).FindAll(script, -1); all != len(marks) {
		t.Errorf("the script uses localStorage in %d places, and for its mark in %d", all, len(marks))
	}
	for _, wrong := range []string{"<style", " style=", " onclick=", " onload=", "javascript:"} {
		if bytes.Contains(ours(".html"), []byte(wrong)) {
			t.Errorf("the page has %s", wrong)
		}
	}
	if n := bytes.Count(script, []byte("fetch(")); n != 1 {
		t.Errorf("the script fetches in %d places, want 1", n)
	}
}

// quoted are the texts of a module: its string literals, without the addresses of imports.
var quoted = regexp.MustCompile("\"(?:[^\"\\\\\n]|\\\\.)*\"|`(?:[^`\\\\]|\\\\.)*`")

// A reader of the page needs no method and no path. core/api.js asks, core/snippets.js has
// what is made for copying.
func TestTextsNameNoRequest(t *testing.T) {
	request := regexp.MustCompile(`\b(GET|POST|PUT|PATCH|DELETE|HEAD)\b|(^|[\s(])/(admin|iot|v2|v3|ledgers|inbound|webhooks|events|soap|readyz|healthz|metrics)\b|would be here`)
	for name, f := range loadFiles() {
		if !strings.HasSuffix(name, ".js") || strings.HasPrefix(name, "uplot-") || name == "core/api.js" || name == "core/snippets.js" {
			continue
		}
		for _, text := range quoted.FindAllString(string(f.content), -1) {
			if text = strings.Trim(text, "\"`"); request.MatchString(text) {
				t.Errorf("%s: %q names a request", name, text)
			}
		}
	}
}
