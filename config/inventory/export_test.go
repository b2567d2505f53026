package inventory

import (
	"fmt"
	"reflect"
	"strings"
)

// FieldTable returns a Markdown table of every field of a document, in its order.
func FieldTable() string {
	var table strings.Builder
	table.WriteString("| field | meaning |\n|---|---|\n")
	addRows(&table, reflect.TypeFor[Document](), "")
	return table.String()
}

func addRows(table *strings.Builder, t reflect.Type, path string) {
	if path != "" {
		path += "."
	}
	for _, f := range fieldsOf(t) {
		fieldPath := path + f.name
		meaning := descriptions()[fieldPath]
		if f.required {
			meaning = "required: " + meaning
		}
		_, _ = fmt.Fprintf(table, "| `%s` | %s |\n", fieldPath, meaning)
		inner := f.Type
		for inner.Kind() == reflect.Slice || inner.Kind() == reflect.Pointer {
			if inner.Kind() == reflect.Slice {
				fieldPath += "[]"
			}
			inner = inner.Elem()
		}
		if inner.Kind() == reflect.Struct {
			addRows(table, inner, fieldPath)
		}
	}
}
