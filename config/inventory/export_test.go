package inventory

import (
	"fmt"
	"reflect"
	"strings"
)

// FieldTable returns a Markdown table of every field of a document, in its order.
func FieldTable() string {
	var out strings.Builder
	out.WriteString("| field | meaning |\n|---|---|\n")
	addRows(&out, reflect.TypeFor[Document](), "")
	return out.String()
}

func addRows(out *strings.Builder, t reflect.Type, path string) {
	if path != "" {
		path += "."
	}
	for _, f := range fieldsOf(t) {
		at := path + f.name
		meaning := descriptions()[at]
		if f.required {
			meaning = "required: " + meaning
		}
		_, _ = fmt.Fprintf(out, "| `%s` | %s |\n", at, meaning)
		inner := f.Type
		for inner.Kind() == reflect.Slice || inner.Kind() == reflect.Pointer {
			if inner.Kind() == reflect.Slice {
				at += "[]"
			}
			inner = inner.Elem()
		}
		if inner.Kind() == reflect.Struct {
			addRows(out, inner, at)
		}
	}
}
