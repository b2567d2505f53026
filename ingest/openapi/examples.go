package openapi

import (
	_ "embed" // the examples
	"encoding/json"
	"fmt"
	"maps"
	"slices"

	"github.com/getkin/kin-openapi/openapi3"
)

// examples has bodies of requests and answers that the tests recorded, by operationId. "make
// golden" records them again.
//
//go:embed examples.json
var examples []byte

type example struct {
	Requests map[string]any
	Answers  map[string]map[string]any
}

// addExamples adds the examples to the bodies and answers of a document.
func addExamples(doc *openapi3.T) error {
	var recorded map[string]example
	if err := json.Unmarshal(examples, &recorded); err != nil {
		return fmt.Errorf("openapi: examples: %w", err)
	}
	for _, path := range slices.Sorted(maps.Keys(doc.Paths.Map())) {
		for _, op := range doc.Paths.Value(path).Operations() {
			e := recorded[op.OperationID]
			if op.RequestBody != nil {
				setExamples(op.RequestBody.Value.Content, e.Requests)
			}
			for status, answer := range op.Responses.Map() {
				setExamples(answer.Value.Content, e.Answers[status])
			}
		}
	}
	return nil
}

// setExamples sets the example of each media type, unless the document has one.
func setExamples(content openapi3.Content, examples map[string]any) {
	for kind, media := range content {
		if v, ok := examples[kind]; ok && media.Example == nil && media.Examples == nil {
			media.Example = v
		}
	}
}
