package contracttest_test

import (
	"net/http"
	"slices"
	"strings"
	"testing"

	"github.com/getkin/kin-openapi/openapi3"
	"github.com/gofiber/fiber/v2"

	"github.com/penstock/penstock/ingest/answertest"
	"github.com/penstock/penstock/ingest/openapi"
	"github.com/penstock/penstock/ingest/openapi/contracttest"
	"github.com/penstock/penstock/relay/relaytest"
)

const contract = `
openapi: 3.0.3
info: {title: Valves, version: "1"}
security: [{key: []}]
components: {securitySchemes: {key: {type: apiKey, in: header, name: X-Key}}}
paths:
  /valves/{id}:
    get:
      operationId: getValve
      summary: Get a valve
      tags: [Valves]
      parameters:
        - {name: id, in: path, required: true, schema: {type: string}}
        - {name: limit, in: query, schema: {type: integer, maximum: 10}}
      responses:
        "200":
          description: The valve.
          content:
            application/json:
              schema:
                type: object
                required: [id]
                additionalProperties: false
                properties:
                  id: {type: string}
                  open: {type: boolean}
                  parts: {type: array, items: {type: object, additionalProperties: false, properties: {name: {type: string}}}}
        "404": {description: Not found. The body is empty.}
        "503":
          description: Later.
          headers: {Retry-After: {required: true, schema: {type: integer}}}
  /valves:
    post:
      operationId: addValve
      summary: Add a valve
      tags: [Valves]
      requestBody:
        content:
          application/json: {schema: {type: object, additionalProperties: false, properties: {name: {type: string}}}}
          application/x-www-form-urlencoded: {schema: {type: object, properties: {size: {type: integer}}}}
      responses:
        "200": {description: Done., content: {text/plain: {schema: {type: string, enum: ["", DONE]}}}}
  /files/{rest}:
    x-wildcard: true
    get:
      operationId: getFile
      summary: Get a file
      tags: [Files]
      parameters: [{name: rest, in: path, required: true, schema: {type: string}}]
      responses:
        "200": {description: The file., content: {text/plain: {schema: {type: string}}}}
`

func document(t *testing.T, source string) *openapi3.T {
	t.Helper()
	doc, err := openapi.Load([]byte(source))
	relaytest.NoError(t, err)
	return doc
}

func nothing(*fiber.Ctx) error { return nil }

func TestRoutesAreOperations(t *testing.T) {
	mountAll := func(app *fiber.App) {
		app.Use(nothing)
		group := app.Group("/valves", nothing)
		group.Get("/:valve", nothing)
		group.Post("/", nothing)
		app.Get("/files/*", nothing)
	}
	for _, tc := range []struct {
		name  string
		mount func(*fiber.App)
		want  []string
	}{
		{"the same routes with other names of parameters", mountAll, nil},
		{"a route that is not documented", func(app *fiber.App) { mountAll(app); app.Delete("/valves/:id", nothing) },
			[]string{"DELETE /valves/{}: is mounted and not documented"}},
		{"another method of a documented path", func(app *fiber.App) { mountAll(app); app.Get("/valves", nothing) },
			[]string{"GET /valves: is mounted and not documented"}},
		{"an operation that is not mounted", func(app *fiber.App) { app.Get("/valves/:id", nothing); app.Get("/files/*", nothing) },
			[]string{"POST /valves: is documented and not mounted"}},
		{"a parameter instead of the wildcard of the document", func(app *fiber.App) {
			app.Get("/valves/:id", nothing)
			app.Post("/valves", nothing)
			app.Get("/files/:name", nothing)
		}, []string{"GET /files/{*}: is documented and not mounted", "GET /files/{}: is mounted and not documented"}},
	} {
		t.Run(tc.name, func(t *testing.T) {
			app := fiber.New()
			tc.mount(app)
			if got := contracttest.DiffRoutes(app, document(t, contract)); !slices.Equal(got, tc.want) {
				t.Errorf("got %q, want %q", got, tc.want)
			}
		})
	}
}

func TestCheckFindsEachDifference(t *testing.T) {
	const js = "application/json"
	for _, tc := range []struct {
		name    string
		request string // method target type body
		status  int
		header  http.Header
		body    string
		want    string // a part of the only difference; empty for no difference
	}{
		{"as documented", "GET /valves/v1?limit=3", 200, http.Header{"Content-Type": {js}}, `{"id":"v1","open":true}`, ""},
		{"headers that every answer may have", "GET /valves/v1", 200, http.Header{"Content-Type": {js}, "X-Request-Id": {"7"}, "Date": {"now"}}, `{"id":"v1"}`, ""},
		{"an undocumented field", "GET /valves/v1", 200, http.Header{"Content-Type": {js}}, `{"id":"v1","colour":"red"}`, `property "colour" is unsupported`},
		{"an undocumented field of an element of a list", "GET /valves/v1", 200, http.Header{"Content-Type": {js}}, `{"id":"v1","parts":[{"name":"a","size":2}]}`, `property "size" is unsupported`},
		{"a missing field", "GET /valves/v1", 200, http.Header{"Content-Type": {js}}, `{}`, `property "id" is missing`},
		{"a field of another type", "GET /valves/v1", 200, http.Header{"Content-Type": {js}}, `{"id":1}`, "/id"},
		{"another media type", "GET /valves/v1", 200, http.Header{"Content-Type": {"text/html"}}, `{"id":"v1"}`, "not documented"},
		{"a body that is not valid JSON", "GET /valves/v1", 200, http.Header{"Content-Type": {js}}, `{"id`, "is not valid JSON"},
		{"an undocumented status", "GET /valves/v1", 418, nil, "", "status is not documented"},
		{"an empty body", "GET /valves/v1", 404, nil, "", ""},
		{"a body where none is documented", "GET /valves/v1", 404, http.Header{"Content-Type": {js}}, `{}`, "should have no body"},
		{"a missing header", "GET /valves/v1", 503, nil, "", "Retry-After is missing"},
		{"a header of another type", "GET /valves/v1", 503, http.Header{"Retry-After": {"soon"}}, "", "Retry-After"},
		{"an undocumented header", "GET /valves/v1", 404, http.Header{"X-Pressure": {"3"}}, "", "X-Pressure is not documented"},
		{"an undocumented parameter", "GET /valves/v1?deep=1", 200, http.Header{"Content-Type": {js}}, `{"id":"v1"}`, "deep is not documented"},
		{"a parameter of another type", "GET /valves/v1?limit=ten", 200, http.Header{"Content-Type": {js}}, `{"id":"v1"}`, "limit"},
		{"a parameter out of bounds", "GET /valves/v1?limit=11", 200, http.Header{"Content-Type": {js}}, `{"id":"v1"}`, "limit"},
		{"a refused request may be invalid", "GET /valves/v1?limit=ten", 404, nil, "", ""},
		{"an undocumented field that is taken", "POST /valves " + js + ` {"nom":"a"}`, 200, nil, "", `property "nom" is unsupported`},
		{"an undocumented field of a form", "POST /valves application/x-www-form-urlencoded size=3&colour=red", 200, nil, "", "colour is not documented"},
		{"a field of a form of another type", "POST /valves application/x-www-form-urlencoded size=big", 200, nil, "", "size"},
		{"a word that is not documented", "POST /valves", 200, http.Header{"Content-Type": {"text/plain"}}, "OK", "the answer"},
		{"the rest of a path", "GET /files/a/b/c", 200, http.Header{"Content-Type": {"text/plain"}}, "x", ""},
		{"no such operation", "DELETE /valves/v1", 404, nil, "", "no such operation"},
		{"no such path", "GET /taps", 404, nil, "", "no such operation"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			parts := append(strings.SplitN(tc.request, " ", 4), "", "")
			got := contracttest.New(document(t, contract)).Check(contracttest.Exchange{
				Method: parts[0], Target: parts[1], Request: http.Header{"Content-Type": {parts[2]}}, RequestBody: []byte(parts[3]),
				Status: tc.status, Answer: tc.header, AnswerBody: []byte(tc.body),
			})
			if tc.want == "" {
				relaytest.Equal(t, "the differences", got, nil)
				return
			}
			if len(got) != 1 {
				t.Fatalf("%d differences, want 1: %q", len(got), got)
			}
			answertest.Contains(t, "the difference", got[0], tc.want)
		})
	}
}

func TestUnrequiredListsFieldsOfEveryAnswer(t *testing.T) {
	for name, tc := range map[string]struct{ answers, want []string }{
		"a field of every answer":               {[]string{`{"id":"a","open":true}`, `{"id":"b","open":false}`}, []string{"getValve 200.open"}},
		"a field that an answer lacks":          {[]string{`{"id":"a","open":true}`, `{"id":"b"}`}, nil},
		"a required field":                      {[]string{`{"id":"a"}`}, nil},
		"a field of every element of all lists": {[]string{`{"id":"a","parts":[{"name":"x"}]}`, `{"id":"b"}`, `{"id":"c","parts":[{"name":"y"},{"name":"z"}]}`}, []string{"getValve 200.parts[].name"}},
		"a field that an element lacks":         {[]string{`{"id":"a"}`, `{"id":"c","parts":[{"name":"y"},{}]}`}, nil},
	} {
		t.Run(name, func(t *testing.T) {
			c := contracttest.New(document(t, contract))
			for _, body := range tc.answers {
				found := c.Check(contracttest.Exchange{Method: "GET", Target: "/valves/v1", Status: 200, Answer: http.Header{"Content-Type": {"application/json"}}, AnswerBody: []byte(body)})
				if len(found) > 0 {
					t.Fatal(found)
				}
			}
			if got := c.Unrequired(); !slices.Equal(got, tc.want) {
				t.Errorf("got %q, want %q", got, tc.want)
			}
		})
	}
}

func TestUncoveredListsAnswersWithoutAnExchange(t *testing.T) {
	c := contracttest.New(document(t, contract))
	c.Check(contracttest.Exchange{Method: "GET", Target: "/valves/v1", Status: 404})
	c.Check(contracttest.Exchange{Method: "GET", Target: "/files/a", Status: 500})
	want := []string{"addValve 200", "getFile 200", "getValve 200", "getValve 503"}
	if got := c.Uncovered(); !slices.Equal(got, want) {
		t.Errorf("got %q, want %q", got, want)
	}
}

func TestStrictListsIncompletePlaces(t *testing.T) {
	const part = "parts: {type: array, items: {type: object, additionalProperties: false,"
	for _, tc := range []struct{ name, old, new, want string }{
		{"a complete document", "", "", ""},
		{"an object that takes any field", "additionalProperties: false\n", "description: Anything.\n", "GET /valves/{id}: 200 lets undocumented fields through"},
		{"an element of a list that takes any field", part, strings.TrimSuffix(part, " additionalProperties: false,"), "200.parts[] lets undocumented fields through"},
		{"no summary", "summary: Get a file\n", "\n", "GET /files/{rest}: needs"},
		{"a range of statuses", `"404": {`, `"4XX": {`, "4XX is not one status"},
		{"an operation without a security requirement", "security: [{key: []}]\n", "\n", "GET /files/{rest}: declares no security requirement"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			got := contracttest.Strict(document(t, strings.Replace(contract, tc.old, tc.new, 1)))
			if tc.want == "" {
				if len(got) > 0 {
					t.Errorf("got %q, want none", got)
				}
				return
			}
			if !slices.ContainsFunc(got, func(s string) bool { return strings.Contains(s, tc.want) }) {
				t.Errorf("got %q, want %q", got, tc.want)
			}
		})
	}
}
