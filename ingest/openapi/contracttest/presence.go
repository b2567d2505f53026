package contracttest

import (
	"encoding/json"
	"slices"

	"github.com/getkin/kin-openapi/openapi3"
)

// presence is how often an object of answers was seen, and each of its fields.
type presence struct {
	at      string // the first place where it was seen
	objects int
	fields  map[string]int
}

// noteAnswer counts the objects in an answer's body.
func (c *Checker) noteAnswer(at string, media *openapi3.MediaType, body []byte) {
	var v any
	if media != nil && json.Unmarshal(body, &v) == nil {
		c.note(at, media.Schema, v)
	}
}

// note counts the objects in a value of an answer, by their schemas.
func (c *Checker) note(at string, ref *openapi3.SchemaRef, v any) {
	s := ref.Value
	for _, one := range slices.Concat(s.OneOf, s.AnyOf, s.AllOf) {
		if one.Value.VisitJSON(v) == nil {
			c.note(at, one, v)
		}
	}
	switch v := v.(type) {
	case []any:
		for _, entry := range v {
			if s.Items != nil {
				c.note(at+"[]", s.Items, entry)
			}
		}
	case map[string]any:
		c.object(at, s, v)
	}
}

func (c *Checker) object(at string, s *openapi3.Schema, v map[string]any) {
	seen := c.present[s]
	if seen == nil {
		seen = &presence{at: at, fields: make(map[string]int)}
		c.present[s] = seen
	}
	seen.objects++
	for name, field := range v {
		if property := s.Properties[name]; property != nil {
			seen.fields[name]++
			c.note(at+"."+name, property, field)
		} else if more := s.AdditionalProperties.Schema; more != nil {
			c.note(at+".*", more, field)
		}
	}
}

// Unrequired returns the fields of answers that every object seen had and that the
// document does not require, as "operationId status.path.field". An object that callers
// send too requires only what they have to send.
func (c *Checker) Unrequired() []string {
	var out []string
	sent := c.sent()
	for s, seen := range c.present {
		for name, n := range seen.fields {
			if n == seen.objects && !sent[s] && !slices.Contains(s.Required, name) {
				out = append(out, seen.at+"."+name)
			}
		}
	}
	slices.Sort(out)
	return out
}

// sent are the schemas of what request bodies hold.
func (c *Checker) sent() map[*openapi3.Schema]bool {
	out := make(map[*openapi3.Schema]bool)
	for _, item := range c.doc.Paths.Map() {
		for _, op := range item.Operations() {
			if op.RequestBody == nil {
				continue
			}
			for _, media := range op.RequestBody.Value.Content {
				reach(media.Schema, out)
			}
		}
	}
	return out
}

// reach adds a schema and those within it.
func reach(ref *openapi3.SchemaRef, out map[*openapi3.Schema]bool) {
	if ref == nil || out[ref.Value] {
		return
	}
	s := ref.Value
	out[s] = true
	for _, one := range slices.Concat(s.OneOf, s.AnyOf, s.AllOf) {
		reach(one, out)
	}
	for _, one := range s.Properties {
		reach(one, out)
	}
	reach(s.Items, out)
	reach(s.AdditionalProperties.Schema, out)
}
