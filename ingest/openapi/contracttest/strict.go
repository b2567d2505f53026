package contracttest

import (
	"slices"
	"strings"

	"github.com/getkin/kin-openapi/openapi3"
)

// Strict returns the places where a document is incomplete: response objects without
// additionalProperties, responses for any status, schemas that are missing, and operations without
// an id, a summary, a tag or a security requirement.
func Strict(doc *openapi3.T) []string {
	var faults []string
	for path, item := range doc.Paths.Map() {
		for method, op := range item.Operations() {
			s := strictChecker{path: method + " " + path, seen: make(map[*openapi3.Schema]bool)}
			s.checkOperation(doc, op)
			faults = append(faults, s.faults...)
		}
	}
	slices.Sort(faults)
	return faults
}

type strictChecker struct {
	path   string
	faults []string
	seen   map[*openapi3.Schema]bool
}

func (s *strictChecker) add(label string) { s.faults = append(s.faults, s.path+": "+label) }

func (s *strictChecker) checkOperation(doc *openapi3.T, op *openapi3.Operation) {
	if op.OperationID == "" || op.Summary == "" || len(op.Tags) == 0 {
		s.add("needs an operationId, a summary and a tag")
	}
	if op.Security == nil && len(doc.Security) == 0 {
		s.add("declares no security requirement")
	}
	for status, ref := range op.Responses.Map() {
		if strings.Trim(status, "0123456789") != "" {
			s.add(status + " is not one status")
		}
		for _, media := range ref.Value.Content {
			s.checkSchema(status, media.Schema)
		}
	}
}

// checkSchema checks a schema of an answer and the schemas within it.
func (s *strictChecker) checkSchema(place string, ref *openapi3.SchemaRef) {
	if ref == nil || ref.Value == nil {
		s.add(place + " has no schema")
		return
	}
	v := ref.Value
	if s.seen[v] {
		return
	}
	s.seen[v] = true
	if v.Type.Is("object") && v.AdditionalProperties.Has == nil && v.AdditionalProperties.Schema == nil {
		s.add(place + " lets undocumented fields through")
	}
	for _, part := range slices.Concat(v.OneOf, v.AnyOf, v.AllOf) {
		s.checkSchema(place, part)
	}
	for name, part := range v.Properties {
		s.checkSchema(place+"."+name, part)
	}
	if v.Items != nil {
		s.checkSchema(place+"[]", v.Items)
	}
	if additional := v.AdditionalProperties.Schema; additional != nil {
		s.checkSchema(place+".*", additional)
	}
}
