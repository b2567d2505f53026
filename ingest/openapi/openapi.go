// Package openapi serves the contract of every surface as one OpenAPI 3.0
// document, and as a page to read.
//
// Each surface keeps its own document next to its handlers; here they become one. Two documents may
// share a component of the same name only when it says the same in both; a path belongs to one of
// them. Anything else is an error. The page is rendered from the document and fetches nothing.
package openapi

import (
	"bytes"
	_ "embed" // the documents' head and the page
	"encoding/json"
	"fmt"
	"regexp"
	"strings"
	"sync"

	"github.com/gofiber/fiber/v2"

	"github.com/penstock/penstock/ingest/httpd"
)

//go:embed openapi.yaml
var head []byte

// Mount adds /openapi.json and /docs to the app, made of the documents of the
// surfaces, in YAML, in the order the page has them. Neither takes a token.
//
// The documents are merged at the first request for either: that takes 110 MB and most
// of a start, and few ask. They are part of the program, so a test finds what is wrong
// with them; an invalid one answers 500.
func Mount(app fiber.Router, surfaces ...[]byte) {
	merged := sync.OnceValues(func() (contract, error) { return newContract(surfaces) })
	app.Get("/openapi.json", func(c *fiber.Ctx) error {
		made, err := merged()
		if err != nil {
			return err
		}
		c.Set(fiber.HeaderContentType, fiber.MIMEApplicationJSON)
		return c.Send(made.document)
	})
	app.Get("/docs", func(c *fiber.Ctx) error {
		made, err := merged()
		if err != nil {
			return err
		}
		c.Set(fiber.HeaderContentType, fiber.MIMETextHTMLCharsetUTF8)
		c.Set(fiber.HeaderContentSecurityPolicy, policy())
		return c.Send(made.page)
	})
}

// contract is the merged document in JSON, and the page made of it.
type contract struct{ document, page []byte }

func newContract(surfaces [][]byte) (contract, error) {
	doc, err := Merge(surfaces...)
	if err != nil {
		return contract{}, err
	}
	document, err := json.Marshal(doc)
	if err != nil {
		return contract{}, fmt.Errorf("openapi: encode: %w", err)
	}
	var page bytes.Buffer
	err = render(&page, doc)
	return contract{document, page.Bytes()}, err
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
