package strict

import (
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"strconv"
	"strings"

	"go.yaml.in/yaml/v3"
)

// parse returns the root of the document, or nil for an empty one.
func parse(data []byte) (*yaml.Node, error) {
	if trimmed := bytes.TrimLeft(data, " \t\r\n\ufeff"); len(trimmed) > 0 && trimmed[0] == '{' && json.Valid(trimmed) {
		return parseJSON(trimmed)
	}
	d := yaml.NewDecoder(bytes.NewReader(data))
	var doc, extra yaml.Node
	switch err := d.Decode(&doc); {
	case errors.Is(err, io.EOF):
		return nil, nil
	case err != nil:
		return nil, syntax(err)
	}
	if err := d.Decode(&extra); !errors.Is(err, io.EOF) {
		return nil, errors.New("expected one document, got more than one")
	}
	if len(doc.Content) != 1 || doc.Content[0].ShortTag() == "!!null" {
		return nil, nil
	}
	return doc.Content[0], nil
}

// Keys returns the top-level keys of a document in their order; nil if the document is not a
// mapping or is invalid.
func Keys(data []byte) (keys []string) {
	root, err := parse(data)
	if err != nil || root == nil || root.Kind != yaml.MappingNode {
		return nil
	}
	for i := 0; i < len(root.Content); i += 2 {
		keys = append(keys, root.Content[i].Value)
	}
	return keys
}

func syntax(err error) error {
	return errors.New("expected YAML or JSON: " + strings.TrimPrefix(err.Error(), "yaml: "))
}

// parseJSON returns the root of a JSON document. The YAML parser cannot read all JSON, because
// the parser refuses the surrogate pairs with which JSON escapes characters beyond 16 bits.
func parseJSON(data []byte) (*yaml.Node, error) {
	d := json.NewDecoder(bytes.NewReader(data))
	d.UseNumber()
	root, err := jsonNode(d)
	if err != nil {
		return nil, syntax(err)
	}
	return root, nil
}

func jsonNode(d *json.Decoder) (*yaml.Node, error) {
	token, err := d.Token()
	if err != nil {
		return nil, err
	}
	switch v := token.(type) {
	case json.Delim:
		return jsonContent(d, v)
	case json.Number:
		if strings.ContainsAny(v.String(), ".eE") {
			return scalar("!!float", v.String()), nil
		}
		return scalar("!!int", v.String()), nil
	case bool:
		return scalar("!!bool", strconv.FormatBool(v)), nil
	case string:
		return scalar("!!str", v), nil
	}
	return scalar("!!null", "null"), nil
}

func jsonContent(d *json.Decoder, open json.Delim) (*yaml.Node, error) {
	n := &yaml.Node{Kind: yaml.SequenceNode, Tag: "!!seq"}
	if open == '{' {
		n = &yaml.Node{Kind: yaml.MappingNode, Tag: "!!map"}
	}
	for d.More() {
		child, err := jsonNode(d) // keys and values of a mapping alternate
		if err != nil {
			return nil, err
		}
		n.Content = append(n.Content, child)
	}
	_, err := d.Token() // the closing bracket
	return n, err
}

func scalar(tag, value string) *yaml.Node {
	return &yaml.Node{Kind: yaml.ScalarNode, Tag: tag, Value: value}
}

// YAML writes a JSON document as YAML, with its fields in the same order.
func YAML(json []byte) ([]byte, error) {
	root, err := parseJSON(json)
	if err != nil {
		return nil, err
	}
	var buf bytes.Buffer
	e := yaml.NewEncoder(&buf)
	e.SetIndent(2)
	if err := e.Encode(root); err != nil {
		return nil, err
	}
	return buf.Bytes(), e.Close()
}
