package strict

import (
	"bytes"

	"go.yaml.in/yaml/v3"
)

// YAML writes a JSON document as YAML, its fields in the same order.
func YAML(json []byte) ([]byte, error) {
	root, err := parseJSON(json)
	if err != nil {
		return nil, err
	}
	var out bytes.Buffer
	e := yaml.NewEncoder(&out)
	e.SetIndent(2)
	if err := e.Encode(root); err != nil {
		return nil, err
	}
	return out.Bytes(), e.Close()
}
