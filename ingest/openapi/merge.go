package openapi

import (
	"context"
	_ "embed" // the introduction
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"

	"github.com/getkin/kin-openapi/openapi3"
)

// chapters is the introduction of the merged document, in Markdown.
//
//go:embed chapters.md
var chapters string

// Merge joins this package's own document and the documents of the surfaces. Each operation gets the
// default security of its document, and a sample in TypeScript. Bodies and answers get names
// (see suitGenerators) and examples.
func Merge(surfaces ...[]byte) (*openapi3.T, error) {
	document, err := Load(head)
	if err != nil {
		return nil, err
	}
	document.Info.Description = chapters
	for _, source := range surfaces {
		part, err := Load(source)
		if err != nil {
			return nil, err
		}
		if err := addDocument(document, part); err != nil {
			return nil, fmt.Errorf("openapi: %s: %w", part.Info.Title, err)
		}
	}
	if err := suitGenerators(document); err != nil {
		return nil, err
	}
	encoded, err := json.Marshal(document)
	if err != nil {
		return nil, fmt.Errorf("openapi: encode: %w", err)
	}
	merged, err := Load(encoded) // resolves the references within the merged document
	if err != nil {
		return nil, err
	}
	if err := addExamples(merged); err != nil {
		return nil, err
	}
	return merged, addSamples(merged)
}

// Load reads and validates one document with its examples, in YAML or JSON.
func Load(source []byte) (*openapi3.T, error) {
	doc, err := openapi3.NewLoader().LoadFromData(source)
	if err != nil {
		return nil, fmt.Errorf("openapi: read: %w", err)
	}
	if err := doc.Validate(context.Background()); err != nil {
		return nil, fmt.Errorf("openapi: %w", err)
	}
	return doc, nil
}

func addDocument(document, part *openapi3.T) error {
	document.Tags = append(document.Tags, part.Tags...)
	for path, item := range part.Paths.Map() {
		if document.Paths.Value(path) != nil {
			return fmt.Errorf("%s: another document has this path", path)
		}
		for _, op := range item.Operations() {
			if op.Security == nil {
				op.Security = &part.Security
			}
		}
		document.Paths.Set(path, item)
	}
	dst, src := components(document), components(part)
	return errors.Join(
		unite("schema", dst.Schemas, src.Schemas), unite("parameter", dst.Parameters, src.Parameters),
		unite("response", dst.Responses, src.Responses), unite("security scheme", dst.SecuritySchemes, src.SecuritySchemes),
	)
}

// components returns a document's components. It creates missing maps.
func components(doc *openapi3.T) *openapi3.Components {
	if doc.Components == nil {
		doc.Components = &openapi3.Components{}
	}
	c := doc.Components
	if c.Schemas == nil {
		c.Schemas = openapi3.Schemas{}
	}
	if c.Parameters == nil {
		c.Parameters = openapi3.ParametersMap{}
	}
	if c.Responses == nil {
		c.Responses = openapi3.ResponseBodies{}
	}
	if c.SecuritySchemes == nil {
		c.SecuritySchemes = openapi3.SecuritySchemes{}
	}
	return c
}

// unite adds components to dst. Components of the same name must be equal.
func unite[M ~map[string]V, V any](kind string, dst, src M) error {
	for _, name := range slices.Sorted(maps.Keys(src)) {
		component, exists := dst[name]
		if !exists {
			dst[name] = src[name]
			continue
		}
		same, err := equal(component, src[name])
		if err != nil {
			return fmt.Errorf("%s %s: %w", kind, name, err)
		}
		if !same {
			return fmt.Errorf("%s %s: another document has a different one of this name", kind, name)
		}
	}
	return nil
}

func equal(a, b any) (bool, error) {
	x, err := json.Marshal(a)
	if err != nil {
		return false, err
	}
	y, err := json.Marshal(b)
	return string(x) == string(y), err
}
