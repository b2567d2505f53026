package contracttest

import (
	"encoding/json"
	"slices"

	"github.com/getkin/kin-openapi/openapi3"
)

// presence counts the occurrences of an object in answers, and of each of its fields.
type presence struct {
	path    string // of the first occurrence
	objects int
	fields  map[string]int
}

// countAnswer counts the objects in the body of an answer.
func (c *Checker) countAnswer(path string, media *openapi3.MediaType, body []byte) {
	var v any
	if media != nil && json.Unmarshal(body, &v) == nil {
		c.countObjects(path, media.Schema, v)
	}
}

// countObjects counts the objects in a value of an answer, by their schemas.
func (c *Checker) countObjects(path string, ref *openapi3.SchemaRef, v any) {
	s := ref.Value
	for _, part := range slices.Concat(s.OneOf, s.AnyOf, s.AllOf) {
		if part.Value.VisitJSON(v) == nil {
			c.countObjects(path, part, v)
		}
	}
	switch v := v.(type) {
	case []any:
		for _, entry := range v {
			if s.Items != nil {
				c.countObjects(path+"[]", s.Items, entry)
			}
		}
	case map[string]any:
		c.countObject(path, s, v)
	}
}

func (c *Checker) countObject(path string, s *openapi3.Schema, v map[string]any) {
	seen := c.presence[s]
	if seen == nil {
		seen = &presence{path: path, fields: make(map[string]int)}
		c.presence[s] = seen
	}
	seen.objects++
	for name, field := range v {
		if property := s.Properties[name]; property != nil {
			seen.fields[name]++
			c.countObjects(path+"."+name, property, field)
		} else if additional := s.AdditionalProperties.Schema; additional != nil {
			c.countObjects(path+".*", additional, field)
		}
	}
}

// Unrequired returns the fields of answers that every observed object had and that the document
// does not require, as "operationId status.path.field". It omits schemas of request bodies,
// because these require only the fields that callers must send.
func (c *Checker) Unrequired() []string {
	var faults []string
	inRequests := c.requestSchemas()
	for s, seen := range c.presence {
		for name, n := range seen.fields {
			if n == seen.objects && !inRequests[s] && !slices.Contains(s.Required, name) {
				faults = append(faults, seen.path+"."+name)
			}
		}
	}
	slices.Sort(faults)
	return faults
}

// requestSchemas returns the schemas that occur in request bodies.
func (c *Checker) requestSchemas() map[*openapi3.Schema]bool {
	schemas := make(map[*openapi3.Schema]bool)
	for _, item := range c.doc.Paths.Map() {
		for _, op := range item.Operations() {
			if op.RequestBody == nil {
				continue
			}
			for _, media := range op.RequestBody.Value.Content {
				addSchemas(media.Schema, schemas)
			}
		}
	}
	return schemas
}

// addSchemas adds a schema and the schemas within it to schemas.
func addSchemas(ref *openapi3.SchemaRef, schemas map[*openapi3.Schema]bool) {
	if ref == nil || schemas[ref.Value] {
		return
	}
	s := ref.Value
	schemas[s] = true
	for _, part := range slices.Concat(s.OneOf, s.AnyOf, s.AllOf) {
		addSchemas(part, schemas)
	}
	for _, part := range s.Properties {
		addSchemas(part, schemas)
	}
	addSchemas(s.Items, schemas)
	addSchemas(s.AdditionalProperties.Schema, schemas)
}
