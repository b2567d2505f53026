package inventory

import (
	_ "embed" // the meanings
	"encoding/json"
	"maps"
	"reflect"
	"slices"
	"strings"

	"github.com/penstock/penstock/config/strict"
)

// durationPattern is Go's form of a duration.
const durationPattern = `([0-9]+(\.[0-9]+)?(ns|us|µs|ms|s|m|h))+`

// Schema returns the JSON Schema of a document, for editors. It is made of the types
// and tags that the document is read and checked with; what depends on other fields,
// such as a reference, is checked when the document is applied.
func Schema() ([]byte, error) {
	root := schemaOf(reflect.TypeFor[Document](), "", nil)
	root["$schema"] = "https://json-schema.org/draft/2020-12/schema"
	root["title"] = "Penstock inventory"
	text, err := json.MarshalIndent(root, "", "  ")
	return append(text, '\n'), err
}

func schemaOf(t reflect.Type, path string, check []string) map[string]any {
	switch {
	case t == reflect.TypeFor[Duration]():
		return map[string]any{"type": "string", "pattern": "^(0|" + durationPattern + ")$"}
	case t.Kind() == reflect.Pointer:
		return schemaOf(t.Elem(), path, check)
	case t.Kind() == reflect.Struct:
		return structSchema(t, path)
	case t.Kind() == reflect.Slice:
		if len(check) > 0 && check[0] == "each" {
			check = check[1:]
		}
		return map[string]any{"type": "array", "items": schemaOf(t.Elem(), path+"[]", check)}
	}
	out := map[string]any{"type": jsonTypes(t.Kind())}
	if len(check) > 0 {
		maps.Copy(out, kinds()[check[0]].schema(check[1:]))
	}
	return out
}

// jsonTypes are the JSON types that a Go value is read from: digits may stand for text
// without quotes.
func jsonTypes(k reflect.Kind) any {
	switch k {
	case reflect.Bool:
		return "boolean"
	case reflect.Int, reflect.Int64:
		return "integer"
	case reflect.Float64:
		return "number"
	}
	return []string{"string", "integer"}
}

func structSchema(t reflect.Type, path string) map[string]any {
	properties, required := map[string]any{}, []string{}
	for _, f := range fieldsOf(t, path) {
		one := schemaOf(f.field.Type, f.path, strings.Fields(f.field.Tag.Get("check")))
		if f.field.Tag.Get("strict") == "one" {
			one = map[string]any{"anyOf": []any{one["items"], one}}
		}
		if f.required {
			required = append(required, f.name)
			if one["type"] == "array" {
				one["minItems"] = 1
			}
		}
		if text := meanings()[f.path]; text != "" {
			one["description"] = text
		}
		properties[f.name] = one
	}
	out := map[string]any{"type": "object", "additionalProperties": false, "properties": properties}
	if len(required) > 0 {
		out["required"] = required
	}
	return out
}

// documented is a field of the document.
type documented struct {
	name, path string
	required   bool
	field      reflect.StructField
}

// fieldsOf lists the fields of a struct in their order.
func fieldsOf(t reflect.Type, path string) []documented {
	if path != "" {
		path += "."
	}
	var out []documented
	byName := strict.Fields(t)
	names := slices.SortedFunc(maps.Keys(byName), func(a, b string) int { return byName[a] - byName[b] })
	for _, name := range names {
		f := t.Field(byName[name])
		_, options, _ := strings.Cut(f.Tag.Get("json"), ",")
		out = append(out, documented{name, path + name, options == "", f})
	}
	return out
}

//go:embed fields.txt
var fieldMeanings string

// meanings says of each field what it is for; a path ends its lists with [].
func meanings() map[string]string {
	out := map[string]string{}
	for line := range strings.Lines(fieldMeanings) {
		path, meaning, _ := strings.Cut(strings.TrimSpace(line), "\t")
		out[path] = meaning
	}
	return out
}
