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

// checkRequiredFields fails the test unless the contract requires each field that every answer had.
func checkRequiredFields(t *testing.T, checker *contracttest.Checker) {
	t.Helper()
	for _, field := range checker.Unrequired() {
		if field == "usageReport 422.errors" || // absent if the job is not completed; tested in ingest/restv3
			field == "recover 200.missing" || // absent if only a server was accepted; tested in ingest/admin
			field == "ready 200.backends.*.note" { // a back end may have no note; tested in ingest/admin
			continue
		}
		t.Errorf("every answer has %s, but the contract does not require it", field)
	}
}

// checkOmissions sends the body of every sample several times, each time without one field. If the
// request is refused, the contract must require the field. If the request is accepted although the
// contract requires the field, checkTraffic reports a difference.
func checkOmissions(g *e2e.Gateway, doc *openapi3.T, allSamples []sample) {
	g.T.Helper()
	for _, s := range allSamples {
		var body any
		if s.contentType != "application/json" || json.Unmarshal([]byte(s.body), &body) != nil {
			continue
		}
		owner, _ := s.clients(g)
		schema := operation(doc, s.operation).RequestBody.Value.Content[s.contentType].Schema
		omitEach(body, nil, func(path []string) {
			encoded, err := json.Marshal(body)
			relaytest.NoError(g.T, err)
			s.body = string(encoded)
			field := strings.Join(path, ".")
			if resp := s.send(owner); resp.Status == 422 && namesField(resp.Body, field) && !requires(schema, path) && !slices.Contains(conditionalFields(strings.TrimSuffix(s.operation, "OfSource")), field) {
				g.T.Errorf("%s refuses a body without %s, which the contract does not require: %s", s.operation, field, resp.Body)
			}
		})
	}
}

// omitEach calls visit once for each field of a body, while the body lacks that field.
func omitEach(body any, path []string, visit func(path []string)) {
	switch v := body.(type) {
	case map[string]any:
		for _, name := range slices.Sorted(maps.Keys(v)) {
			value, fieldPath := v[name], append(slices.Clone(path), name)
			delete(v, name)
			visit(fieldPath)
			v[name] = value
			omitEach(value, fieldPath, visit)
		}
	case []any:
		for i, entry := range v {
			omitEach(entry, append(slices.Clone(path), strconv.Itoa(i)), visit)
		}
	}
}

// namesField reports whether the errors of an answer name a field, as a key of an object or in a text
// that lists fields.
func namesField(answer, field string) bool {
	var listed struct{ Errors string }
	if json.Unmarshal([]byte(answer), &listed) == nil {
		return slices.Contains(strings.Split(listed.Errors, ", "), field)
	}
	var keyed struct{ Errors map[string]any }
	return json.Unmarshal([]byte(answer), &keyed) == nil && keyed.Errors[field] != nil
}

// conditionalFields returns the fields that only some bodies of an operation require.
func conditionalFields(operation string) []string {
	return map[string][]string{
		"createGeographicRelay": {"parameters"},                        // with actions that need a destination
		"patchGeographicRelay":  {"parameters"},                        // with actions that need a destination
		"replayDeliveries":      {"ids"},                               // or a filter
		"explainRelay":          {"text"},                              // or data
		"jsonPost":              {"text"},                              // or data
		"createRule":            {"silent_for"},                        // for on: silent
		"muteAlarms":            {"rule_id"},                           // or device_id
		"tryRule":               {"rule"},                              // or rule_id
		"validateToken":         {"token"},                             // or tokens
		"reassignSIMs":          {"iccids"},                            // or source_subscriber
		"jsonReceiptPost":       {"state"},                             // or code
		"androidPost":           {"id"},                                // absent from posts of a forwarder
		"vonagePost":            {"messageId", "msisdn", "to", "text"}, // receipts have the same address
		"sinchPost":             {"type", "id", "from", "to"},          // absent in the Conversation API
		"tryDecoder":            {"decoder_id", "source", "frames", "device_id"},
	}[operation]
}

// requires reports whether a schema requires the field at a path.
func requires(ref *openapi3.SchemaRef, path []string) bool {
	s := ref.Value
	name, remaining := path[0], path[1:]
	switch {
	case s.Type.Is("object") && len(s.Properties)+len(s.AllOf) == 0 && s.AdditionalProperties.Schema == nil: // described in words
		return true
	case slices.ContainsFunc(slices.Concat(s.OneOf, s.AnyOf, s.AllOf), func(option *openapi3.SchemaRef) bool { return requires(option, path) }):
		return true
	case len(remaining) == 0:
		return slices.Contains(s.Required, name)
	case s.Items != nil:
		return requires(s.Items, remaining)
	case s.Properties[name] != nil:
		return requires(s.Properties[name], remaining)
	}
	return s.AdditionalProperties.Schema != nil && requires(s.AdditionalProperties.Schema, remaining)
}
