// Package openapi serves the contracts of all surfaces as one OpenAPI 3.0 document at
// /openapi.json, and its page at /docs.
//
// Each surface has its own document beside its handlers; Merge joins the documents. Two of them
// must not have the same path, and their components of the same name must be equal. chapters.md
// is the introduction.
//
// The page is Scalar's API reference as published (docs/adr/0028). It loads its script and
// the document from the gateway, and nothing from other hosts.
package openapi

import (
	"bytes"
	"compress/gzip"
	_ "embed" // the documents and the page
	"encoding/json"
	"fmt"
	"io"
	"regexp"
	"strings"
	"sync"

	"github.com/gofiber/fiber/v2"

	"github.com/penstock/penstock/ingest/httpd"
)

//go:embed openapi.yaml
var head []byte

//go:embed page.html
var page []byte

// script is standalone.js of @scalar/api-reference, compressed with gzip.
//
//go:embed scalar-1.76.0/standalone.js.gz
var script []byte

// policy is the Content-Security-Policy of the page. Only styles may be inline, because the
// script inserts a style sheet and style attributes. Scripts, and the requests that a reader
// sends, are limited to the gateway. No other page may frame this one, because it has a field
// for a token.
const policy = "default-src 'none'; script-src 'self'; style-src 'unsafe-inline'; img-src 'self' data:; connect-src 'self'; " +
	"base-uri 'none'; form-action 'none'; frame-ancestors 'none'"

// Mount adds /openapi.json, /docs and the page's script to the app. surfaces are the documents
// of the surfaces in YAML, in the order of the page. None of the routes requires a token.
//
// The documents are merged at the first request, because merging takes 110 MB and more time
// than the rest of the start. The documents are part of the program, so that a test finds an
// invalid one.
func Mount(app fiber.Router, surfaces ...[]byte) {
	merged := sync.OnceValues(func() ([]byte, error) {
		doc, err := Merge(surfaces...)
		if err != nil {
			return nil, err
		}
		encoded, err := json.Marshal(doc)
		if err != nil {
			return nil, fmt.Errorf("openapi: encode: %w", err)
		}
		return encoded, nil
	})
	app.Get("/openapi.json", func(c *fiber.Ctx) error {
		document, err := merged()
		if err != nil {
			return err
		}
		c.Set(fiber.HeaderContentType, fiber.MIMEApplicationJSON)
		return c.Send(document)
	})
	app.Get("/docs", func(c *fiber.Ctx) error {
		c.Set(fiber.HeaderContentType, fiber.MIMETextHTMLCharsetUTF8)
		c.Set(fiber.HeaderContentSecurityPolicy, policy)
		c.Set(fiber.HeaderReferrerPolicy, "no-referrer")
		return c.Send(page)
	})
	plainScript := sync.OnceValues(func() ([]byte, error) {
		r, err := gzip.NewReader(bytes.NewReader(script))
		if err != nil {
			return nil, fmt.Errorf("openapi: script: %w", err)
		}
		return io.ReadAll(r)
	})
	app.Get("/docs/reference.js", func(c *fiber.Ctx) error {
		c.Set(fiber.HeaderContentType, fiber.MIMETextJavaScriptCharsetUTF8)
		c.Set(fiber.HeaderVary, fiber.HeaderAcceptEncoding)
		c.Set(fiber.HeaderCacheControl, "max-age=3600")
		if c.AcceptsEncodings("gzip") == "gzip" {
			c.Set(fiber.HeaderContentEncoding, "gzip")
			return c.Send(script)
		}
		plain, err := plainScript()
		if err != nil {
			return err
		}
		return c.Send(plain)
	})
}

// OpenAPI returns the document of the operations of this package.
func OpenAPI() []byte { return head }

// operationLine matches the lines of our documents with a path, a method, an operationId or a summary.
var operationLine = regexp.MustCompile(`(?m)^  (/\S*):$|^    (get|put|post|patch|delete):$|^      operationId: (\w+)$|^      summary: (.+)$`)

// Operations lists the operations of documents. It reads lines because parsing YAML would take
// most of the start; a test compares the list with the parsed documents.
func Operations(documents ...[]byte) []httpd.Operation {
	var operations []httpd.Operation
	for _, document := range documents {
		var o httpd.Operation
		for _, found := range operationLine.FindAllSubmatch(document, -1) {
			switch {
			case len(found[1]) > 0:
				o.Path = strings.NewReplacer("{", ":", "}", "").Replace(string(found[1]))
			case len(found[2]) > 0:
				o.Method = strings.ToUpper(string(found[2]))
			case len(found[3]) > 0:
				o.ID = string(found[3])
			default: // the summary follows the operationId
				o.Summary = string(found[4])
				operations = append(operations, o)
			}
		}
	}
	return operations
}
