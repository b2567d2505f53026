package relay

import (
	"fmt"
	"strings"
)

// Problems has the problems of a request by parameter.
type Problems map[string][]string

// Add adds a problem of a parameter.
func (p Problems) Add(field, text string) { p[field] = append(p[field], text) }

// AddNamed adds a problem. It replaces %s in the text with the name in words, see FieldWords.
func (p Problems) AddNamed(field, text string) {
	p.Add(field, strings.ReplaceAll(text, "%s", FieldWords(field)))
}

// AddAll adds the problems of other parameters. It prepends prefix to their names.
func (p Problems) AddAll(prefix string, fields map[string][]string) {
	for field, texts := range fields {
		p[prefix+field] = append(p[prefix+field], texts...)
	}
}

// Require adds a problem for a parameter that is empty.
func (p Problems) Require(field, value string) {
	if strings.TrimSpace(value) == "" {
		p.AddNamed(field, "The %s field is required.")
	}
}

// Limit adds a problem for a text that is longer than limit bytes.
func (p Problems) Limit(field, value string, limit int) {
	if len(value) > limit {
		p.AddNamed(field, fmt.Sprintf("The %%s must not be longer than %d bytes.", limit))
	}
}

// Assign sets a field to a value unless the value is nil.
func Assign[T any](field, value *T) {
	if value != nil {
		*field = *value
	}
}

// Problem returns a KindInvalid error with one problem. It replaces %s in the text as AddNamed does.
func Problem(field, text string) error {
	p := Problems{}
	p.AddNamed(field, text)
	return p.Err()
}

// Err returns the problems as one error of KindInvalid, or nil if there are none.
func (p Problems) Err() error {
	if len(p) == 0 {
		return nil
	}
	return &Error{Kind: KindInvalid, Message: "The given data was invalid.", Fields: p}
}

// FieldWords returns a parameter's name in words: location id for location_id.
func FieldWords(field string) string { return strings.ReplaceAll(field, "_", " ") }
