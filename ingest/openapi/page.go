package openapi

import (
	"cmp"
	"crypto/sha256"
	_ "embed" // the page
	"encoding/base64"
	"encoding/json"
	"fmt"
	"html/template"
	"io"
	"maps"
	"slices"
	"strings"

	"github.com/getkin/kin-openapi/openapi3"
)

//go:embed page.html
var pageSource string

// findScript searches in the page.
//
//go:embed find.js
var findScript string

// tryScript sends requests from the page.
//
//go:embed try.js
var tryScript string

// script stands in the page itself.
func script() string { return findScript + tryScript }

// policy is the Content-Security-Policy of the page. It allows the page's script alone, by
// its hash, and requests to the gateway alone; since the page takes a token, no other page
// may frame it.
func policy() string {
	sum := sha256.Sum256([]byte(script()))
	return "default-src 'none'; connect-src 'self'; style-src 'unsafe-inline'; script-src 'sha256-" + base64.StdEncoding.EncodeToString(sum[:]) +
		"'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
}

// page has the data of the template.
type page struct {
	Title, Description string
	Sections           []section
	Script             template.JS
}

// section is a tag and its operations.
type section struct {
	Name, Description string
	Operations        []operation
}

type operation struct {
	ID, Method, Path, Summary, Description string
	Security                               []string
	Parameters                             []parameter
	Bodies                                 []body
	Answers                                []answer
}

type parameter struct {
	Name, In, Shape, Description string
	Required                     bool
}

type body struct{ Type, Shape, Example string }

type answer struct {
	Status, Description string
	Bodies              []body
}

// render writes the document as HTML.
func render(w io.Writer, doc *openapi3.T) error {
	t, err := template.New("page").Parse(pageSource)
	if err != nil {
		return fmt.Errorf("openapi: page: %w", err)
	}
	if err := t.Execute(w, pageOf(doc)); err != nil {
		return fmt.Errorf("openapi: page: %w", err)
	}
	return nil
}

func pageOf(doc *openapi3.T) page {
	p := page{Title: doc.Info.Title, Description: doc.Info.Description, Script: template.JS(script())}
	for _, tag := range doc.Tags {
		s := section{Name: tag.Name, Description: tag.Description}
		for path, item := range doc.Paths.Map() {
			for method, op := range item.Operations() {
				if slices.Contains(op.Tags, tag.Name) {
					s.Operations = append(s.Operations, operationOf(doc, method, path, op))
				}
			}
		}
		slices.SortFunc(s.Operations, func(a, b operation) int {
			return cmp.Or(cmp.Compare(a.Path, b.Path), cmp.Compare(a.Method, b.Method))
		})
		p.Sections = append(p.Sections, s)
	}
	return p
}

func operationOf(doc *openapi3.T, method, path string, op *openapi3.Operation) operation {
	rendered := operation{
		ID: op.OperationID, Method: method, Path: path, Summary: op.Summary, Description: op.Description,
		Security: securityOf(doc, op),
	}
	for _, ref := range op.Parameters {
		v := ref.Value
		rendered.Parameters = append(rendered.Parameters, parameter{v.Name, v.In, shape(v.Schema, 0), v.Description, v.Required})
	}
	if op.RequestBody != nil {
		rendered.Bodies = bodiesOf(op.RequestBody.Value.Content)
	}
	answers := op.Responses.Map()
	for _, status := range slices.Sorted(maps.Keys(answers)) {
		v := answers[status].Value
		rendered.Answers = append(rendered.Answers, answer{status, *v.Description, bodiesOf(v.Content)})
	}
	return rendered
}

// securityOf says in words which credentials an operation takes.
func securityOf(doc *openapi3.T, op *openapi3.Operation) []string {
	var schemes []string
	if op.Security == nil {
		return nil
	}
	for _, requirement := range *op.Security {
		var names []string
		for _, name := range slices.Sorted(maps.Keys(requirement)) {
			scheme := doc.Components.SecuritySchemes[name].Value
			names = append(names, cmp.Or(scheme.Name, "Authorization: "+scheme.Scheme)+" — "+scheme.Description)
		}
		schemes = append(schemes, strings.Join(names, " With "))
	}
	return schemes
}

func bodiesOf(content openapi3.Content) []body {
	var bodies []body
	for _, kind := range slices.Sorted(maps.Keys(content)) {
		bodies = append(bodies, body{kind, shape(content[kind].Schema, 0), exampleOf(content[kind])})
	}
	return bodies
}

// exampleOf writes the example of a media type; empty if there is none.
func exampleOf(m *openapi3.MediaType) string {
	switch v := m.Example.(type) {
	case nil:
		return ""
	case string:
		return v
	default:
		encoded, err := json.MarshalIndent(v, "", "  ")
		if err != nil {
			return ""
		}
		return string(encoded)
	}
}

// maxDepth bounds how far a shape is written out.
const maxDepth = 8

// shape writes a schema as the JSON that it describes, with a type or the words
// allowed in the place of each value.
func shape(ref *openapi3.SchemaRef, depth int) string {
	if ref == nil || ref.Value == nil || depth > maxDepth {
		return "any"
	}
	s := ref.Value
	if s.Nullable {
		plain := *s
		plain.Nullable = false
		return shape(&openapi3.SchemaRef{Value: &plain}, depth) + " | null"
	}
	switch {
	case len(s.AllOf) > 0:
		return shape(&openapi3.SchemaRef{Value: united(s)}, depth)
	case len(s.OneOf)+len(s.AnyOf) > 0:
		return alternatives(slices.Concat(s.OneOf, s.AnyOf), depth)
	case len(s.Enum) > 0:
		parts := make([]string, len(s.Enum))
		for i, v := range s.Enum {
			parts[i] = fmt.Sprintf("%#v", v)
		}
		return strings.Join(parts, " | ")
	case s.Type.Is("array"):
		return "[" + shape(s.Items, depth+1) + ", …]"
	case s.Type.Is("object"):
		return object(s, depth)
	case s.Type == nil:
		return "any"
	}
	return strings.Join(append(s.Type.Slice(), formats(s)...), " ")
}

func formats(s *openapi3.Schema) []string {
	if s.Format == "" {
		return nil
	}
	return []string{"(" + s.Format + ")"}
}

func alternatives(refs openapi3.SchemaRefs, depth int) string {
	parts := make([]string, len(refs))
	for i, ref := range refs {
		parts[i] = shape(ref, depth)
	}
	return strings.Join(parts, " | ")
}

// united is a schema that says itself what those of its allOf say.
func united(s *openapi3.Schema) *openapi3.Schema {
	flat := *s
	flat.AllOf = nil
	flat.Properties = maps.Clone(s.Properties)
	if flat.Properties == nil {
		flat.Properties = make(openapi3.Schemas)
	}
	for _, ref := range s.AllOf {
		part := ref.Value
		if len(part.AllOf) > 0 {
			part = united(part)
		}
		maps.Copy(flat.Properties, part.Properties)
		flat.Required = append(slices.Clone(flat.Required), part.Required...)
		flat.Enum = append(slices.Clone(flat.Enum), part.Enum...)
		flat.Type, flat.Items = cmp.Or(flat.Type, part.Type), cmp.Or(flat.Items, part.Items)
	}
	return &flat
}

func object(s *openapi3.Schema, depth int) string {
	indent := strings.Repeat("  ", depth+1)
	var b strings.Builder
	b.WriteString("{\n")
	for _, name := range slices.Sorted(maps.Keys(s.Properties)) {
		star := ""
		if slices.Contains(s.Required, name) {
			star = " *"
		}
		fmt.Fprintf(&b, "%s%s%s: %s", indent, name, star, shape(s.Properties[name], depth+1))
		if text := s.Properties[name].Value.Description; text != "" {
			b.WriteString("   — " + text)
		}
		b.WriteString("\n")
	}
	if additional := s.AdditionalProperties; additional.Schema != nil {
		fmt.Fprintf(&b, "%s…: %s\n", indent, shape(additional.Schema, depth+1))
	}
	b.WriteString(strings.Repeat("  ", depth) + "}")
	return b.String()
}
