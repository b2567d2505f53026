package params

import (
	"strconv"
	"strings"
	"time"

	"github.com/penstock/penstock/decoders/iso8601"
	"github.com/penstock/penstock/relay"
)

// Input is the parameters of one request, with the problems of those that were read.
type Input struct {
	relay.Problems
	Get Source
	// name returns how texts name a parameter.
	name func(string) string
}

// New returns the parameters of a source; name returns how texts name a parameter.
func New(get Source, name func(string) string) *Input {
	return &Input{Problems: relay.Problems{}, Get: get, name: name}
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
func (in *Input) Texts(name string) (out []string) {
	value := in.Value(name)
	all, ok := value.([]any)
	if one, alone := value.(string); alone {
		return []string{one}
	}
	if !ok && value != nil {
		in.Wrong(name, "The %s must be an array.")
	}
	for _, v := range all {
		s, ok := v.(string)
		if !ok {
			in.Wrong(name, "The %s must be an array of strings.")
			return nil
		}
		out = append(out, s)
	}
	return out
}

// Flag returns a boolean, nil if it is missing; a query has it as a word.
func (in *Input) Flag(name string) *bool {
	switch v := in.Value(name).(type) {
	case nil:
		return nil
	case bool:
		return &v
	case string:
		if v == "true" || v == "1" || v == "false" || v == "0" {
			return new(v == "true" || v == "1")
		}
	}
	in.Wrong(name, "The %s must be true or false.")
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
	n, err := strconv.Atoi(text)
	if err != nil || n < 1 || n > most {
		in.Wrong(name, "The %s must be "+form+" "+strconv.Itoa(most)+".")
	}
	return n
}
