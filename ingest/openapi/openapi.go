// Package openapi serves the contract of every surface as one OpenAPI 3.0 document at
// /openapi.json, and a page to read it at /docs.
//
// Each surface keeps its own document beside its handlers; Merge makes one of them. Two
// documents may share a component of the same name only if it is equal in both; a path
// belongs to one of them. Anything else is an error. chapters.md is the introduction.
//
// The page is Scalar's API reference as published (docs/adr/0028). It loads its script and
// the document from the gateway and nothing from other hosts.
package openapi

import (
	"bytes"
	"compress/gzip"
	_ "embed" // the documents' head and the page
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

// policy is the Content-Security-Policy of the page. The renderer inserts its style sheet
// and style attributes, hence 'unsafe-inline' for styles alone. Scripts, and the requests
// that a reader sends, are limited to the gateway. Since the page takes a token, no other
// page may frame it.
const policy = "default-src 'none'; script-src 'self'; style-src 'unsafe-inline'; img-src 'self' data:; connect-src 'self'; " +
	"base-uri 'none'; form-action 'none'; frame-ancestors 'none'"

// Mount adds /openapi.json, /docs and the page's script to the app. surfaces are the
// documents of the surfaces in YAML, in the order in which the page shows them. None of the
// routes takes a token.
//
// The documents are merged at the first request, because that takes 110 MB and most of a
// start, and few need it. They are part of the program, so a test finds an invalid one; it
// would answer 500.
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
	app.Get("/docs/reference.js", sendScript)
}

// sendScript sends the page's script, decompressed if the client does not accept gzip.
func sendScript(c *fiber.Ctx) error {
	c.Set(fiber.HeaderContentType, fiber.MIMETextJavaScriptCharsetUTF8)
	c.Set(fiber.HeaderVary, fiber.HeaderAcceptEncoding)
	c.Set(fiber.HeaderCacheControl, "max-age=3600")
	if c.AcceptsEncodings("gzip") == "gzip" {
		c.Set(fiber.HeaderContentEncoding, "gzip")
		return c.Send(script)
	}
	r, err := gzip.NewReader(bytes.NewReader(script))
	if err != nil {
		return fmt.Errorf("openapi: script: %w", err)
	}
	plain, err := io.ReadAll(r)
	if err != nil {
		return fmt.Errorf("openapi: script: %w", err)
	}
	return c.Send(plain)
}

// OpenAPI returns the document of the two operations of this package, without
// those of the surfaces.
func OpenAPI() []byte { return head }

// operationLine matches the lines of our documents that name a path, a method or an id.
var operationLine = regexp.MustCompile(`(?m)^  (/\S*):$|^    (get|put|post|patch|delete):$|^      operationId: (\w+)$`)

// Operations lists the operations of documents. It reads lines, because parsing the
// documents would take most of a start; a test compares the list with the parsed documents.
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
			default:
				o.ID = string(found[3])
				operations = append(operations, o)
			}
		}
	}
	return operations
}
