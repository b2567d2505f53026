package openapi

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/getkin/kin-openapi/openapi3"
)

// addSamples adds a sample in TypeScript to each operation. The page itself generates samples in
// curl, Go and Python.
func addSamples(doc *openapi3.T) error {
	for path, item := range doc.Paths.Map() {
		for method, op := range item.Operations() {
			source, err := typeScript(method, path, op)
			if err != nil {
				return fmt.Errorf("openapi: sample of %s: %w", op.OperationID, err)
			}
			if op.Extensions == nil {
				op.Extensions = make(map[string]any)
			}
			op.Extensions["x-codeSamples"] = []map[string]string{{"lang": "typescript", "label": "TypeScript", "source": source}}
		}
	}
	return nil
}

// typeScript returns the source of a request with fetch. It has the required query parameters,
// the token if the operation requires one, and the example of the first type of body.
func typeScript(method, path string, op *openapi3.Operation) (string, error) {
	var query, headers []string
	declarations := "const gateway: string = \"https://gateway.example\";\n"
	for _, ref := range op.Parameters {
		if p := ref.Value; p.In == openapi3.ParameterInQuery && p.Required {
			query = append(query, p.Name+"=<"+p.Name+">")
		}
	}
	if len(query) > 0 {
		path += "?" + strings.Join(query, "&")
	}
	if op.Security != nil && len(*op.Security) > 0 {
		declarations += "const token: string = \"<token>\";\n"
		headers = append(headers, "Authorization: `Bearer ${token}`")
	}
	body := ""
	if op.RequestBody != nil {
		content := op.RequestBody.Value.Content
		kind := slices.Sorted(maps.Keys(content))[0]
		headers = append(headers, `"Content-Type": `+strconv.Quote(kind))
		example := content[kind].Example
		if example == nil {
			example = struct{}{}
		}
		encoded, err := json.MarshalIndent(example, "  ", "  ")
		if err != nil {
			return "", err
		}
		body = string(encoded)
		if _, isText := example.(string); !isText {
			body = "JSON.stringify(" + body + ")"
		}
	}
	var b strings.Builder
	fmt.Fprintf(&b, declarations+"const response = await fetch(gateway + %q, {\n  method: %q,\n", path, method)
	if len(headers) > 0 {
		fmt.Fprintf(&b, "  headers: { %s },\n", strings.Join(headers, ", "))
	}
	if body != "" {
		fmt.Fprintf(&b, "  body: %s,\n", body)
	}
	b.WriteString("});\nconsole.log(response.status, await response.text());\n")
	return b.String(), nil
}
