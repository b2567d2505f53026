package openapi_test

import (
	"regexp"
	"strings"
	"testing"

	"github.com/getkin/kin-openapi/openapi3"
)

// Client generators fail, or generate code that does not compile, for a document that breaks
// one of these rules; docs/guides/clients.md lists the generators.
func TestGeneratorsCanReadTheDocument(t *testing.T) {
	doc := merged(t)
	separators := regexp.MustCompile(`[^A-Za-z0-9]+`)
	types := make(map[string]string) // lower-case type name → the part of the document that becomes the type
	unique := func(name, origin string) {
		name = strings.ToLower(separators.ReplaceAllString(name, ""))
		if earlier := types[name]; earlier != "" && earlier != origin {
			t.Errorf("%s and %s become one type", earlier, origin)
		}
		types[name] = origin
	}
	for name := range doc.Components.Schemas {
		unique(name, "the schema "+name)
	}
	for name, ref := range doc.Components.Responses {
		unique(name, "the response "+name)
		checkSchemaNames(t, "the response "+name, ref.Value.Content)
	}
	for name := range doc.Components.SecuritySchemes {
		unique(name, "the security scheme "+name)
	}
	for name, ref := range doc.Components.Parameters {
		if ref.Value.Schema.Ref == "" && len(ref.Value.Schema.Value.Enum) > 0 {
			unique(name, "the parameter "+name)
		}
	}
	for name, ref := range doc.Components.Schemas {
		for property, value := range ref.Value.Properties {
			s := value.Value
			if value.Ref == "" && (len(s.Enum) > 0 || s.Type.Is("object") && len(s.Properties) > 0) {
				unique(name+property, "the field "+name+"."+property)
			}
			if s.Type.Is("boolean") && len(s.Enum) > 0 || value.Ref == "" && len(s.OneOf)+len(s.AnyOf) > 0 ||
				s.Type == nil && len(s.OneOf)+len(s.AnyOf)+len(s.AllOf) == 0 {
				t.Errorf("the field %s.%s is a boolean enumeration, has several types without a name, or no type", name, property)
			}
		}
	}
	for path, item := range doc.Paths.Map() {
		for method, op := range item.Operations() {
			for status, ref := range op.Responses.Map() {
				checkSchemaNames(t, method+" "+path+" "+status, ref.Value.Content)
			}
			if op.RequestBody == nil {
				continue
			}
			checkSchemaNames(t, method+" "+path, op.RequestBody.Value.Content)
			form := op.RequestBody.Value.Content["application/x-www-form-urlencoded"]
			for _, parameter := range append(op.Parameters, item.Parameters...) {
				if form != nil && form.Schema.Value.Properties[parameter.Value.Name] != nil {
					t.Errorf("%s %s has %s as a parameter and in its form", method, path, parameter.Value.Name)
				}
			}
		}
	}
}

// checkSchemaNames reports inline schemas of a body that have no type or need a name.
func checkSchemaNames(t *testing.T, label string, content openapi3.Content) {
	t.Helper()
	for contentType, media := range content {
		if media.Schema == nil || media.Schema.Ref != "" {
			continue
		}
		if s := media.Schema.Value; s.Type == nil || len(s.Properties)+len(s.OneOf)+len(s.AnyOf)+len(s.AllOf) > 0 {
			t.Errorf("%s: the body of %s has no type or no name", label, contentType)
		}
	}
}
