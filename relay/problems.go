package relay

import (
	"fmt"
	"strings"
)

// Problems collects what is wrong with the parameters of a request, by parameter.
type Problems map[string][]string

// Add adds a problem of a parameter.
func (p Problems) Add(field, text string) { p[field] = append(p[field], text) }

// AddNamed adds a problem; %s in the text becomes the parameter's name in words.
func (p Problems) AddNamed(field, text string) {
	p.Add(field, strings.ReplaceAll(text, "%s", FieldWords(field)))
}

// AddAll adds the problems of other parameters, whose names get a prefix.
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

// Limit adds a problem for a text that is longer than most bytes.
func (p Problems) Limit(field, value string, limit int) {
	if len(value) > limit {
		p.AddNamed(field, fmt.Sprintf("The %%s must not be longer than %d bytes.", limit))
	}
}

// Assign sets a field to the value that a request has for it; nil leaves the field.
func Assign[T any](field, value *T) {
	if value != nil {
		*field = *value
	}
}

// Problem returns the error of one problem, worded as AddNamed does.
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

// FieldWords returns a parameter's name as texts have it: location id, not
// location_id.
func FieldWords(field string) string { return strings.ReplaceAll(field, "_", " ") }
