package openapi

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/getkin/kin-openapi/openapi3"
)

// suitGenerators adapts a document to common code generators. It moves inline schemas of bodies
// and answers into the components, under names like SignInRequest and ListEventsResult: a
// generator would number them, InlineObject7, in an order that changes with the document. It
// also removes constructs that generators cannot read; see adaptNested.
func suitGenerators(doc *openapi3.T) error {
	n := namer{schemas: components(doc).Schemas, taken: make(map[string]bool)}
	for name := range n.schemas {
		n.taken[strings.ToLower(name)] = true
	}
	for _, name := range slices.Sorted(maps.Keys(doc.Components.Responses)) {
		n.nameContent(doc.Components.Responses[name].Value.Content, name+"Result")
	}
	for _, path := range slices.Sorted(maps.Keys(doc.Paths.Map())) {
		operations := doc.Paths.Value(path).Operations()
		for _, method := range slices.Sorted(maps.Keys(operations)) {
			n.nameOperation(operations[method])
		}
	}
	for _, name := range slices.Sorted(maps.Keys(n.schemas)) {
		n.adaptNested(n.schemas[name].Value, name)
	}
	return n.err
}

// namer names schemas.
type namer struct {
	schemas openapi3.Schemas
	taken   map[string]bool // in lower case, because some languages have a file for each name
	err     error
}

// nameOperation names the body and the answers of an operation.
func (n *namer) nameOperation(op *openapi3.Operation) {
	if op.RequestBody != nil {
		n.nameContent(op.RequestBody.Value.Content, camelCase(op.OperationID)+"Request")
	}
	answers := op.Responses.Map()
	for _, status := range slices.Sorted(maps.Keys(answers)) {
		suffix := "Result"
		if status >= "300" {
			suffix = "Error" + status
		}
		if answers[status].Ref == "" {
			n.nameContent(answers[status].Value.Content, camelCase(op.OperationID)+suffix)
		}
	}
}

// nameContent names the schemas of the media types of one body.
func (n *namer) nameContent(content openapi3.Content, name string) {
	for _, kind := range slices.Sorted(maps.Keys(content)) {
		if schema := content[kind].Schema; schema != nil && schema.Ref == "" && isCompound(schema.Value) {
			n.moveSchema(schema, name)
		}
	}
}

// isCompound reports whether generators create a type for a schema.
func isCompound(s *openapi3.Schema) bool {
	return s.Type.Is("object") && len(s.Properties) > 0 || s.Type.Is("array") && s.Items.Ref == "" && isCompound(s.Items.Value) ||
		len(s.OneOf)+len(s.AnyOf)+len(s.AllOf) > 0
}

// adaptNested adapts the schemas within a schema. It names values of several types, because OpenAPI
// Generator 4 does not define the names of their types. It replaces oneOf by anyOf unless one
// of the types is named, and removes the enumeration of a boolean, which the generator would
// turn into one of strings.
func (n *namer) adaptNested(s *openapi3.Schema, name string) {
	if !slices.ContainsFunc(s.OneOf, func(part *openapi3.SchemaRef) bool { return part.Ref != "" }) {
		s.OneOf, s.AnyOf = nil, slices.Concat(s.OneOf, s.AnyOf)
	}
	if s.Type.Is("boolean") {
		s.Enum = nil
	}
	for _, property := range slices.Sorted(maps.Keys(s.Properties)) {
		n.adaptValue(s.Properties[property], name+camelCase(property))
	}
	n.adaptValue(s.Items, name+"Item")
}

// adaptValue adapts a schema within a schema, and names it if it has several types.
func (n *namer) adaptValue(ref *openapi3.SchemaRef, name string) {
	if ref == nil || ref.Ref != "" {
		return
	}
	n.adaptNested(ref.Value, name)
	if len(ref.Value.OneOf)+len(ref.Value.AnyOf) > 0 {
		n.moveSchema(ref, name)
	}
}

// moveSchema moves a schema into the components and replaces it by a reference. Equal schemas may
// have the same name.
func (n *namer) moveSchema(ref *openapi3.SchemaRef, name string) {
	same, err := equal(n.schemas[name], ref)
	if n.taken[strings.ToLower(name)] && (!same || err != nil) {
		n.err = fmt.Errorf("openapi: the name %s of an inline schema is taken", name)
		return
	}
	n.taken[strings.ToLower(name)] = true
	n.schemas[name] = openapi3.NewSchemaRef("", ref.Value)
	ref.Ref = "#/components/schemas/" + name
}

// camelCase returns a name in camel case: SearchKey for searchKey, FromDate for from_date.
func camelCase(name string) string {
	var b strings.Builder
	for word := range strings.FieldsFuncSeq(name, func(r rune) bool { return r == '_' || r == '-' }) {
		b.WriteString(strings.ToUpper(word[:1]) + word[1:])
	}
	return b.String()
}
