package contracttest

import (
	"net/http"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/getkin/kin-openapi/openapi3"
	"github.com/gofiber/fiber/v2"

	"github.com/penstock/penstock/ingest/httpd"
	"github.com/penstock/penstock/ingest/openapi"
)

// CheckSurface fails the test for every difference between the routes that mount adds and the
// operations of a contract, and for every place that Strict returns. The tests of cmd/penstock,
// where the whole gateway runs, compare requests and answers with the contract.
func CheckSurface(t testing.TB, contract []byte, mount func(*fiber.App, *httpd.Auth)) {
	t.Helper()
	doc, err := openapi.Load(contract)
	if err != nil {
		t.Fatal(err)
	}
	app := fiber.New()
	mount(app, httpd.NewAuth(httpd.AuthDeps{Now: time.Now}))
	for _, difference := range DiffRoutes(app, doc) {
		t.Error(difference)
	}
	for _, loose := range Strict(doc) {
		t.Error(loose)
	}
}

// DiffRoutes returns the differences between the routes of an app and the operations of a document. It
// ignores middleware, HEAD, which fiber adds to every GET, and the routes for other gateways below
// /internal/.
func DiffRoutes(app *fiber.App, doc *openapi3.T) []string {
	mounted := make(map[string]bool)
	for _, r := range app.GetRoutes(true) {
		if r.Method != http.MethodHead && !strings.HasPrefix(r.Path, "/internal/") {
			mounted[r.Method+" "+normalRoute(r.Path)] = true
		}
	}
	documented := make(map[string]bool)
	for path, item := range doc.Paths.Map() {
		for method := range item.Operations() {
			documented[method+" "+normalPath(path, item)] = true
		}
	}
	var faults []string
	for name := range mounted {
		if !documented[name] {
			faults = append(faults, name+": is mounted and not documented")
		}
	}
	for name := range documented {
		if !mounted[name] {
			faults = append(faults, name+": is documented and not mounted")
		}
	}
	slices.Sort(faults)
	return faults
}

// normalRoute returns a route of fiber without the names of its parameters.
func normalRoute(path string) string {
	if path != "/" {
		path = strings.TrimSuffix(path, "/")
	}
	segments := strings.Split(path, "/")
	for i, s := range segments {
		switch {
		case strings.HasPrefix(s, ":"):
			segments[i] = "{}"
		case strings.HasPrefix(s, "*"), strings.HasPrefix(s, "+"):
			segments[i] = "{*}"
		}
	}
	return strings.Join(segments, "/")
}

// normalPath returns a path of the document without the names of its parameters.
func normalPath(path string, item *openapi3.PathItem) string {
	segments := strings.Split(path, "/")
	for i, s := range segments {
		if isParameter(s) {
			segments[i] = "{}"
		}
	}
	if lastIndex := len(segments) - 1; wildcard(item) && isParameter(path[strings.LastIndex(path, "/")+1:]) {
		segments[lastIndex] = "{*}"
	}
	return strings.Join(segments, "/")
}

func isParameter(segment string) bool {
	return strings.HasPrefix(segment, "{") && strings.HasSuffix(segment, "}")
}

func wildcard(item *openapi3.PathItem) bool {
	yes, _ := item.Extensions["x-wildcard"].(bool)
	return yes
}
