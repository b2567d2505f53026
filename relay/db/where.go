package db

import (
	"fmt"
	"reflect"
	"strings"
)

// Where is the WHERE clause of a statement under construction, with its parameters.
// The zero value has no conditions.
type Where struct {
	text string
	args []any
}

// And adds a condition. Each ? in the condition is replaced by the next value, or by the only
// value.
func (w *Where) And(condition string, values ...any) {
	if w.text == "" {
		w.text = " WHERE "
	} else {
		w.text += " AND "
	}
	names := make([]string, len(values))
	for i, v := range values {
		names[i] = w.Arg(v)
	}
	for n, part := range strings.Split(condition, "?") {
		if n > 0 {
			w.text += names[min(n, len(names))-1]
		}
		w.text += part
	}
}

// AndSet adds a condition on a value unless the value is zero.
func (w *Where) AndSet(condition string, value any) {
	if !reflect.ValueOf(value).IsZero() {
		w.And(condition, value)
	}
}

// Arg adds a parameter and returns its name.
func (w *Where) Arg(v any) string {
	w.args = append(w.args, v)
	return fmt.Sprintf("$%d", len(w.args))
}

// String returns the clause with a leading space, or an empty string without conditions.
func (w *Where) String() string { return w.text }

// Args returns the parameters of the statement.
func (w *Where) Args() []any { return w.args }
