package openapi

import (
	"compress/gzip"
	"crypto/sha256"
	"encoding/json"
	"fmt"
	"io"
	"strings"
	"testing"

	"github.com/gofiber/fiber/v2"

	"github.com/penstock/penstock/ingest/answertest"
	"github.com/penstock/penstock/relay/relaytest"
)

// part returns a document with one path and one schema.
func part(path, schema, description string) []byte {
	return []byte(`
openapi: 3.0.3
info: {title: Valves, version: "1"}
tags: [{name: "Valves of ` + path + `", description: "Open & <shut>."}]
security: [{key: []}]
components:
  securitySchemes: {key: {type: apiKey, in: header, name: X-Key, description: The key.}}
  schemas:
    ` + schema + `:
      type: object
      required: [id]
      description: ` + description + `
      additionalProperties: false
      properties: {id: {type: string, nullable: true, description: Its <id>.}}
paths:
  ` + path + `:
    get:
      operationId: get` + strings.Trim(path, "/") + `
      summary: Get valves
      tags: ["Valves of ` + path + `"]
      responses:
        "200":
          description: The valves.
          content: {application/json: {schema: {type: array, items: {$ref: "#/components/schemas/` + schema + `"}}}}
`)
}

func TestMerge(t *testing.T) {
	for _, tc := range []struct {
		name  string
		parts [][]byte
		want  string // a part of the error
	}{
		{"two surfaces", [][]byte{part("/a", "A", "x"), part("/b", "B", "x")}, ""},
		{"an equal component in both", [][]byte{part("/a", "A", "x"), part("/b", "A", "x")}, ""},
		{"components of one name that differ", [][]byte{part("/a", "A", "x"), part("/b", "A", "y")}, "Valves: schema A: another document has a different one"},
		{"the same path in both", [][]byte{part("/a", "A", "x"), part("/a", "A", "x")}, "Valves: /a: another document has this path"},
		{"a path that this package adds", [][]byte{part("/docs", "A", "x")}, "/docs: another document"},
		{"invalid YAML", [][]byte{[]byte("openapi: [")}, "openapi: read"},
		{"a dangling reference", [][]byte{[]byte(strings.Replace(string(part("/a", "A", "x")), "schemas/A", "schemas/Z", 1))}, "openapi: read"},
		{"the same operation id in both", [][]byte{part("/a", "A", "x"), []byte(strings.Replace(string(part("/b", "A", "x")), "getb", "geta", 1))}, "geta"},
	} {
		t.Run(tc.name, func(t *testing.T) {
			doc, err := Merge(tc.parts...)
			switch {
			case tc.want == "" && err != nil, tc.want != "" && (err == nil || !strings.Contains(err.Error(), tc.want)):
				t.Fatalf("got error %v, want one that contains %q", err, tc.want)
			case err != nil:
				return
			}
			for _, path := range []string{"/a", "/b"} {
				if op := doc.Paths.Value(path).Get; op.Security == nil || len(*op.Security) != 1 {
					t.Errorf("%s lost the security of its document", path)
				}
			}
			if op := doc.Paths.Value("/openapi.json").Get; op.Security == nil || len(*op.Security) != 0 {
				t.Error("/openapi.json requires a token, want none")
			}
		})
	}
}

func TestMountServesDocumentAndPage(t *testing.T) {
	app := fiber.New()
	Mount(app, part("/a", "A", "x"))
	get := func(path string) (contentType, body string) {
		status, body, header := answertest.Send(t, app, answertest.Request("GET", path, ""))
		relaytest.Equal(t, path+": the status", status, fiber.StatusOK)
		return header.Get("Content-Type"), body
	}
	contentType, body := get("/openapi.json")
	var doc struct{ Paths map[string]any }
	relaytest.NoError(t, json.Unmarshal([]byte(body), &doc))
	relaytest.Equal(t, "the type of the document", contentType, "application/json")
	relaytest.Equal(t, "the number of paths", len(doc.Paths), 4)
	contentType, body = get("/docs")
	relaytest.Equal(t, "the type of the page", contentType, "text/html; charset=utf-8")
	for _, forbidden := range []string{"http://", "https://", "<script>", "style="} {
		if strings.Contains(body, forbidden) {
			t.Errorf("the page contains %q", forbidden)
		}
	}
}

// The script equals the published file in every content encoding.
func TestScriptIsThePublishedFile(t *testing.T) {
	const want = "dcb027152bf20bf2f6dcd66e8f9fb073c1a9e274cf0b94b939a7d99ab8947060" // of @scalar/api-reference 1.76.0
	app := fiber.New()
	Mount(app, part("/a", "A", "x"))
	for _, encoding := range []string{"gzip", "identity"} {
		request := answertest.Request("GET", "/docs/reference.js", "")
		request.Header.Set("Accept-Encoding", encoding)
		_, body, header := answertest.Send(t, app, request)
		if encoding == "gzip" {
			relaytest.Equal(t, "the encoding", header.Get("Content-Encoding"), "gzip")
			r, err := gzip.NewReader(strings.NewReader(body))
			relaytest.NoError(t, err)
			plain, err := io.ReadAll(r)
			relaytest.NoError(t, err)
			body = string(plain)
		}
		relaytest.Equal(t, encoding+": the SHA-256", fmt.Sprintf("%x", sha256.Sum256([]byte(body))), want)
	}
}

// The page may run scripts of the gateway only.
func TestContentSecurityPolicyOfThePage(t *testing.T) {
	app := fiber.New()
	Mount(app, part("/a", "A", "x"))
	_, _, header := answertest.Send(t, app, answertest.Request("GET", "/docs", ""))
	for _, want := range []string{"default-src 'none'", "script-src 'self';", "connect-src 'self'", "frame-ancestors 'none'"} {
		answertest.Contains(t, "the policy", header.Get("Content-Security-Policy"), want)
	}
}

// An operation with a body and a parameter has a sample in TypeScript.
func TestTypeScriptSamples(t *testing.T) {
	doc, err := Merge([]byte(strings.Replace(string(part("/a", "A", "x")), "      responses:", `      requestBody:
        content: {application/json: {schema: {type: object}, example: {open: true}}}
      parameters: [{name: from, in: query, required: true, schema: {type: string}}]
      responses:`, 1)))
	relaytest.NoError(t, err)
	samples := doc.Paths.Value("/a").Get.Extensions["x-codeSamples"].([]map[string]string)
	relaytest.Equal(t, "the sample", samples[0]["source"], `const gateway: string = "https://gateway.example";
const token: string = "<token>";
const response = await fetch(gateway + "/a?from=<from>", {
  method: "GET",
  headers: { Authorization: `+"`Bearer ${token}`"+`, "Content-Type": "application/json" },
  body: JSON.stringify({
    "open": true
  }),
});
console.log(response.status, await response.text());
`)
}
