package contract

import (
	"encoding/json"
	"maps"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/getkin/kin-openapi/openapi3"

	"github.com/penstock/penstock/cmd/penstock/e2e"
	"github.com/penstock/penstock/ingest/openapi/contracttest"
	"github.com/penstock/penstock/relay/relaytest"
)

// requiresWhatIsThere wants the contract to require each field that every answer had.
func requiresWhatIsThere(t *testing.T, checker *contracttest.Checker) {
	t.Helper()
	for _, field := range checker.Unrequired() {
		if field == "usageReport 422.errors" || // not of a job that is not completed; ingest/restv3 holds it
			field == "recover 200.missing" || // not if only a server was accepted; ingest/admin holds it
			field == "ready 200.backends.*.note" { // a back end may be without one; ingest/admin holds it
			continue
		}
		t.Errorf("every answer has it, and the contract does not require it: %s", field)
	}
}

// omissions sends the body of every sample without one field after another: the contract
// requires those whose absence is refused. If it requires others, the examiner says so.
func omissions(g *e2e.Gateway, doc *openapi3.T, all []sample) {
	g.T.Helper()
	for _, s := range all {
		var body any
		if s.kind != "application/json" || json.Unmarshal([]byte(s.body), &body) != nil {
			continue
		}
		owner, _ := s.owner(g)
		schema := operation(doc, s.operation).RequestBody.Value.Content[s.kind].Schema
		omitEach(body, nil, func(path []string) {
			encoded, err := json.Marshal(body)
			relaytest.NoError(g.T, err)
			s.body = string(encoded)
			field := strings.Join(path, ".")
			if a := s.send(owner); a.Status == 422 && names(a.Body, field) && !requires(schema, path) && !slices.Contains(conditional(strings.TrimSuffix(s.operation, "OfSource")), field) {
				g.T.Errorf("%s refuses a body without %s, which the contract does not require: %s", s.operation, field, a.Body)
			}
		})
	}
}

// omitEach visits a body without each of its fields.
func omitEach(body any, path []string, visit func(path []string)) {
	switch v := body.(type) {
	case map[string]any:
		for _, name := range slices.Sorted(maps.Keys(v)) {
			value, at := v[name], append(slices.Clone(path), name)
			delete(v, name)
			visit(at)
			v[name] = value
			omitEach(value, at, visit)
		}
	case []any:
		for i, entry := range v {
			omitEach(entry, append(slices.Clone(path), strconv.Itoa(i)), visit)
		}
	}
}

// names reports whether an answer says that a field is wrong: in an object by field, or
// in a text that lists the fields.
func names(answer, field string) bool {
	var listed struct{ Errors string }
	if json.Unmarshal([]byte(answer), &listed) == nil {
		return slices.Contains(strings.Split(listed.Errors, ", "), field)
	}
	var keyed struct{ Errors map[string]any }
	return json.Unmarshal([]byte(answer), &keyed) == nil && keyed.Errors[field] != nil
}

// conditional are fields of an operation's body that only some bodies must have.
func conditional(operation string) []string {
	return map[string][]string{
		"createGeographicRelay": {"parameters"},                        // with actions that go somewhere
		"patchGeographicRelay":  {"parameters"},                        // with actions that go somewhere
		"replayDeliveries":      {"ids"},                               // or a filter
		"explainRelay":          {"text"},                              // or data
		"jsonPost":              {"text"},                              // or data
		"createRule":            {"silent_for"},                        // of silence
		"muteAlarms":            {"rule_id"},                           // or device_id
		"tryRule":               {"rule"},                              // or rule_id
		"validateToken":         {"token"},                             // or tokens
		"reassignSIMs":          {"iccids"},                            // or source_subscriber
		"jsonReceiptPost":       {"state"},                             // or code
		"androidPost":           {"id"},                                // not of a forwarder
		"vonagePost":            {"messageId", "msisdn", "to", "text"}, // receipts come to the same address
		"sinchPost":             {"type", "id", "from", "to"},          // not in the Conversation API
		"tryDecoder":            {"decoder_id", "source", "frames", "device_id"},
	}[operation]
}

// requires reports whether a schema requires the field at a path.
func requires(ref *openapi3.SchemaRef, path []string) bool {
	s := ref.Value
	name, rest := path[0], path[1:]
	switch {
	case s.Type.Is("object") && len(s.Properties)+len(s.AllOf) == 0 && s.AdditionalProperties.Schema == nil: // described in words
		return true
	case slices.ContainsFunc(slices.Concat(s.OneOf, s.AnyOf, s.AllOf), func(one *openapi3.SchemaRef) bool { return requires(one, path) }):
		return true
	case len(rest) == 0:
		return slices.Contains(s.Required, name)
	case s.Items != nil:
		return requires(s.Items, rest)
	case s.Properties[name] != nil:
		return requires(s.Properties[name], rest)
	}
	return s.AdditionalProperties.Schema != nil && requires(s.AdditionalProperties.Schema, rest)
}
