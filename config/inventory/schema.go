package inventory

import (
	_ "embed" // the descriptions
	"encoding/json"
	"maps"
	"reflect"
	"strings"
)

// durationPattern is Go's form of a duration.
const durationPattern = `([0-9]+(\.[0-9]+)?(ns|us|µs|ms|s|m|h))+`

// Schema returns the JSON Schema of a document, for editors. It is derived from the types and
// tags that Parse uses. It does not check rules that depend on several fields, such as
// references.
func Schema() ([]byte, error) {
	root := schemaOf(reflect.TypeFor[Document](), "", nil)
	root["$schema"] = "https://json-schema.org/draft/2020-12/schema"
	root["title"] = "Penstock inventory"
	text, err := json.MarshalIndent(root, "", "  ")
	return append(text, '\n'), err
}

func schemaOf(t reflect.Type, path string, check []string) map[string]any {
	schema := map[string]any{}
	switch t.Kind() {
	case reflect.Pointer:
		return schemaOf(t.Elem(), path, check)
	case reflect.Struct:
		return structSchema(t, path)
	case reflect.Slice:
		return map[string]any{"type": "array", "items": schemaOf(t.Elem(), path+"[]", check)}
	case reflect.Bool:
		schema["type"] = "boolean"
	case reflect.Int, reflect.Int64:
		schema["type"] = "integer"
	case reflect.Float64:
		schema["type"] = "number"
	default: // digits may stand for text without quotes
		schema["type"] = []string{"string", "integer"}
	}
	if t == reflect.TypeFor[Duration]() {
		return map[string]any{"type": "string", "pattern": "^(0|" + durationPattern + ")$"}
	}
	if len(check) > 0 {
		maps.Copy(schema, kinds()[check[0]].schema(check[1:]))
	}
	return schema
}

func structSchema(t reflect.Type, path string) map[string]any {
	if path != "" {
		path += "."
	}
	properties, required := map[string]any{}, []string{}
	for _, f := range fieldsOf(t) {
		property := schemaOf(f.Type, path+f.name, f.check)
		if f.Tag.Get("strict") == "one" {
			property = map[string]any{"anyOf": []any{property["items"], property}}
		}
		if f.required {
			required = append(required, f.name)
			if property["type"] == "array" {
				property["minItems"] = 1
			}
		}
		if text := descriptions()[path+f.name]; text != "" {
			property["description"] = text
		}
		properties[f.name] = property
	}
	schema := map[string]any{"type": "object", "additionalProperties": false, "properties": properties}
	if len(required) > 0 {
		schema["required"] = required
	}
	return schema
}

// field is a field of a document or of a record.
type field struct {
	reflect.StructField
	name     string
	required bool
	check    []string // the words of the tag check without "each"
}

// fieldsOf lists the fields of a struct in their order.
func fieldsOf(t reflect.Type) []field {
	fields := make([]field, t.NumField())
	for i := range fields {
		f := t.Field(i)
		name, options, _ := strings.Cut(f.Tag.Get("json"), ",")
		fields[i] = field{f, name, options == "", strings.Fields(strings.TrimPrefix(f.Tag.Get("check"), "each "))}
	}
	return fields
}

//go:embed fields.txt
var fieldDescriptions string

// descriptions returns the description of each field by its path, in which [] follows each
// list.
func descriptions() map[string]string {
	texts := map[string]string{}
	for line := range strings.Lines(fieldDescriptions) {
		path, description, _ := strings.Cut(strings.TrimSpace(line), "\t")
		texts[path] = description
	}
	return texts
}
