package params

import (
	"encoding/json"
	"strconv"
	"strings"
	"time"

	"github.com/gofiber/fiber/v2"

	"github.com/penstock/penstock/decoders/decimal"
	"github.com/penstock/penstock/decoders/iso8601"
	"github.com/penstock/penstock/relay"
)

// Input is the parameters of one request, with the problems of those that were read.
type Input struct {
	relay.Problems
	Get Source
	// name returns how texts name a parameter.
	name func(string) string
	// request is that whose query may have unknown parameters, nil for New, and known has
	// the names of the parameters that were read.
	request *fiber.Ctx
	known   []string
}

// New returns the parameters of a source; name returns how texts name a parameter.
func New(get Source, name func(string) string) *Input {
	return &Input{Problems: relay.Problems{}, Get: get, name: name}
}

// OfRequest returns the parameters of an operation, some of which its query may have; name
// returns how texts name a parameter. Err refuses the parameters of the query that were
// not read until then: a misspelt one would otherwise have no effect.
func OfRequest(c *fiber.Ctx, get Source, name func(string) string) *Input {
	in := New(nil, name)
	in.request = c
	in.Get = func(name string) (any, bool) {
		in.Know(name)
		return get(name)
	}
	return in
}

// OfList returns the parameters of an operation that has them in the query alone.
func OfList(c *fiber.Ctx, name func(string) string) *Input { return OfRequest(c, OfQuery(c), name) }

// Know adds a parameter to those that are known, for one that is not read with Get.
func (in *Input) Know(name string) { in.known = append(in.known, name) }

// Err returns what is wrong with the parameters that were read, and the unknown ones of
// the query.
func (in *Input) Err() error {
	if in.request != nil {
		RefuseUnknown(in.request, in.Problems, in.known)
	}
	return in.Problems.Err()
}

// Wrong notes a problem; %s in the text becomes the parameter's name.
func (in *Input) Wrong(name, text string) {
	in.Add(name, strings.ReplaceAll(text, "%s", in.name(name)))
}

// Value returns a parameter as its source has it; nil if it is missing or null.
func (in *Input) Value(name string) any {
	v, _ := in.Get(name)
	return v
}

// Null reports whether a parameter is given as null.
func (in *Input) Null(name string) bool {
	v, given := in.Get(name)
	return given && v == nil
}

// Optional returns a string, nil if it is missing.
func (in *Input) Optional(name string) *string {
	switch v := in.Value(name).(type) {
	case nil:
	case string:
		return &v
	case QueryText:
		return new(string(v))
	default:
		in.Wrong(name, "The %s must be a string.")
	}
	return nil
}

// Text returns a string, "" if it is missing.
func (in *Input) Text(name string) string {
	if v := in.Optional(name); v != nil {
		return *v
	}
	return ""
}

// Required returns a string that must be given and not be empty.
func (in *Input) Required(name string) string {
	text := in.Text(name)
	if text == "" && len(in.Problems[name]) == 0 {
		in.Wrong(name, "The %s field is required.")
	}
	return text
}

// Texts returns a list of strings, of which the query may give one alone.
func (in *Input) Texts(name string) []string {
	switch value := in.Value(name).(type) {
	case nil:
		return nil
	case QueryText:
		return []string{string(value)}
	case []any:
		var texts []string
		for _, v := range value {
			text, ok := v.(string)
			if !ok {
				in.Wrong(name, "The %s must be an array of strings.")
				return nil
			}
			texts = append(texts, text)
		}
		return texts
	}
	in.Wrong(name, "The %s must be an array.")
	return nil
}

// Flag returns a boolean, nil if it is missing. A query has it as true, false, 1 or 0; an
// empty text of a query is missing.
func (in *Input) Flag(name string) *bool {
	switch v := in.Value(name).(type) {
	case nil:
		return nil
	case bool:
		return &v
	case QueryText:
		if v == "" {
			return nil
		}
		if b, ok := ParseBool(string(v)); ok {
			return &b
		}
	}
	in.Wrong(name, "The %s must be true or false.")
	return nil
}

// ParseBool parses a boolean of a query: true, false, 1 or 0.
func ParseBool(text string) (b, ok bool) {
	b = text == "true" || text == "1"
	return b, b || text == "false" || text == "0"
}

// Integer returns a whole number, nil if it is missing; 1e3 and 1.0 are whole. An empty
// text of a query is missing.
func (in *Input) Integer(name string) *int64 {
	switch v := in.Value(name).(type) {
	case nil:
		return nil
	case json.Number:
		if n, ok := decimal.Int(v.String()); ok {
			return &n
		}
	case QueryText:
		if v == "" {
			return nil
		}
		if n, ok := decimal.Int(string(v)); ok {
			return &n
		}
	}
	in.Wrong(name, "The %s must be an integer.")
	return nil
}

// Time returns a time of the years 1970 to 2199 that must be given, in ISO 8601;
// without a zone it is UTC. form says what any other text should have been.
func (in *Input) Time(name, form string) time.Time {
	text := strings.TrimSpace(in.Text(name))
	if text == "" {
		if len(in.Problems[name]) == 0 {
			in.Wrong(name, "The %s field is required.")
		}
		return time.Time{}
	}
	if t, ok := iso8601.Parse(text); ok && t.Year() >= 1970 && t.Year() < 2200 {
		return t
	}
	in.Wrong(name, "The %s must be "+form+".")
	return time.Time{}
}

// Int returns a whole number from 1 to most, fallback if it is missing. form is how
// texts describe the range, before its end.
func (in *Input) Int(name string, fallback, most int, form string) int {
	text := in.Text(name)
	if text == "" {
		return fallback
	}
	n, ok := decimal.Int(text)
	if !ok || n < 1 || n > int64(most) {
		in.Wrong(name, "The %s must be "+form+" "+strconv.Itoa(most)+".")
	}
	return int(n)
}
