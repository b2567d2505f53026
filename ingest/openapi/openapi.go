// Package openapi serves the contract of every surface as one OpenAPI 3.0
// document, and as a page to read.
//
// Each surface keeps its own document beside its handlers; here they become one.
// Two documents may share a component of the same name only when it says the
// same in both; a path belongs to one of them. Anything else is refused when the
// program starts. The page is rendered from the document and fetches nothing.
package openapi

import (
	"bytes"
	_ "embed" // the documents' head and the page
	"encoding/json"
	"fmt"

	"github.com/gofiber/fiber/v2"
)

//go:embed openapi.yaml
var head []byte

// Mount adds /openapi.json and /docs to the app, made of the documents of the
// surfaces, in YAML, in the order the page has them. Neither takes a token. It
// returns an error if a document is invalid or two of them disagree.
func Mount(app fiber.Router, surfaces ...[]byte) error {
	doc, err := Merge(surfaces...)
	if err != nil {
		return err
	}
	document, err := json.Marshal(doc)
	if err != nil {
		return fmt.Errorf("openapi: encode: %w", err)
	}
	var page bytes.Buffer
	if err := render(&page, doc); err != nil {
		return err
	}
	app.Get("/openapi.json", func(c *fiber.Ctx) error {
		c.Set(fiber.HeaderContentType, fiber.MIMEApplicationJSON)
		return c.Send(document)
	})
	app.Get("/docs", func(c *fiber.Ctx) error {
		c.Set(fiber.HeaderContentType, fiber.MIMETextHTMLCharsetUTF8)
		c.Set(fiber.HeaderContentSecurityPolicy, "default-src 'none'; style-src 'unsafe-inline'")
		return c.Send(page.Bytes())
	})
	return nil
}

// OpenAPI returns the document of the two operations of this package, without
// those of the surfaces.
func OpenAPI() []byte { return head }
