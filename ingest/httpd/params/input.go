package params

import (
	"encoding/json"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/gofiber/fiber/v2"

	"github.com/penstock/penstock/decoders/decimal"
	"github.com/penstock/penstock/decoders/iso8601"
	"github.com/penstock/penstock/relay"
)

// Input reads the parameters of a request and collects their problems.
type Input struct {
	relay.Problems
	Get Source
	// name returns the name of a parameter in the texts of problems.
	name func(string) string
	// request is the request whose query is checked for unknown parameters; nil for New.
	request *fiber.Ctx
	known   []string // the parameters that were read
}

// New returns an Input that reads from get. name returns the name of a parameter in the texts of
// problems.
func New(get Source, name func(string) string) *Input {
	return &Input{Problems: relay.Problems{}, Get: get, name: name}
}

// OfRequest returns an Input like New. Its Err also refuses parameters of the query that were not
// read, because a misspelt parameter would have no effect.
func OfRequest(c *fiber.Ctx, get Source, name func(string) string) *Input {
	i := New(nil, name)
	i.request = c
	i.Get = func(name string) (any, bool) {
		i.MarkKnown(name)
		return get(name)
	}
	return i
}

// OfList returns an Input for a request with all parameters in the query.
func OfList(c *fiber.Ctx, name func(string) string) *Input { return OfRequest(c, OfQuery(c), name) }

// MarkKnown adds a parameter that is not read with Get to the known parameters.
func (i *Input) MarkKnown(name string) { i.known = append(i.known, name) }

// IsKnown reports whether a parameter was read with Get or added with MarkKnown.
func (i *Input) IsKnown(name string) bool { return slices.Contains(i.known, name) }

// Err returns the problems of the read parameters and of unknown parameters in the query.
func (i *Input) Err() error {
	if i.request != nil {
		RefuseUnknown(i.request, i.Problems, i.known)
	}
	return i.Problems.Err()
}

// AddProblem adds a problem. It replaces %s in the text by the parameter's name.
func (i *Input) AddProblem(name, text string) {
	i.Add(name, strings.ReplaceAll(text, "%s", i.name(name)))
}

// Value returns a parameter as its source returns it, or nil if it is missing or null.
func (i *Input) Value(name string) any {
	v, _ := i.Get(name)
	return v
}

// Null reports whether a parameter is present and null.
func (i *Input) Null(name string) bool {
	v, present := i.Get(name)
	return present && v == nil
}

// Optional returns a string, or nil if it is missing.
func (i *Input) Optional(name string) *string {
	switch v := i.Value(name).(type) {
	case nil:
	case string:
		return &v
	case QueryText:
		return new(string(v))
	default:
		i.AddProblem(name, "The %s must be a string.")
	}
	return nil
}

// Text returns a string, or "" if it is missing.
func (i *Input) Text(name string) string {
	if v := i.Optional(name); v != nil {
		return *v
	}
	return ""
}

// Required returns a string that must not be missing or empty.
func (i *Input) Required(name string) string {
	text := i.Text(name)
	if text == "" && len(i.Problems[name]) == 0 {
		i.AddProblem(name, "The %s field is required.")
	}
	return text
}

// Texts returns a list of strings. A query may have a single string instead.
func (i *Input) Texts(name string) []string {
	switch value := i.Value(name).(type) {
	case nil:
		return nil
	case QueryText:
		return []string{string(value)}
	case []any:
		var texts []string
		for _, v := range value {
			text, ok := v.(string)
			if !ok {
				i.AddProblem(name, "The %s must be an array of strings.")
				return nil
			}
			texts = append(texts, text)
		}
		return texts
	}
	i.AddProblem(name, "The %s must be an array.")
	return nil
}

// Bool returns a boolean, or nil if it is missing. In a query, booleans are true, false, 1 or 0,
// and an empty value is missing.
func (i *Input) Bool(name string) *bool {
	switch v := i.Value(name).(type) {
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
	i.AddProblem(name, "The %s must be true or false.")
	return nil
}

// ParseBool parses a boolean of a query: true, false, 1 or 0.
func ParseBool(text string) (b, ok bool) {
	b = text == "true" || text == "1"
	return b, b || text == "false" || text == "0"
}

// Integer returns an integer, or nil if it is missing. 1e3 and 1.0 are integers. In a query, an
// empty value is missing.
func (i *Input) Integer(name string) *int64 {
	switch v := i.Value(name).(type) {
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
	i.AddProblem(name, "The %s must be an integer.")
	return nil
}

// Time returns a required time in ISO 8601 between the years 1970 and 2199. The default zone is
// UTC. form describes the format in problems.
func (i *Input) Time(name, form string) time.Time {
	text := strings.TrimSpace(i.Text(name))
	if text == "" {
		if len(i.Problems[name]) == 0 {
			i.AddProblem(name, "The %s field is required.")
		}
		return time.Time{}
	}
	if t, ok := iso8601.Parse(text); ok && t.Year() >= 1970 && t.Year() < 2200 {
		return t
	}
	i.AddProblem(name, "The %s must be "+form+".")
	return time.Time{}
}

// Int returns an integer from 1 to limit, or fallback if it is missing. form describes the range
// in problems, which append limit to form.
func (i *Input) Int(name string, fallback, limit int, form string) int {
	text := i.Text(name)
	if text == "" {
		return fallback
	}
	n, ok := decimal.Int(text)
	if !ok || n < 1 || n > int64(limit) {
		i.AddProblem(name, "The %s must be "+form+" "+strconv.Itoa(limit)+".")
	}
	return int(n)
}

// maxPage is the highest page, so that the offset of a page does not overflow.
const maxPage = 1_000_000_000

// Page returns the page that the parameters page and per_page select. The default is the first
// page with perPage records.
func (i *Input) Page(perPage int) relay.Page {
	return relay.Page{
		Number:  i.Int("page", 1, maxPage, "a number from 1 to"),
		PerPage: i.Int("per_page", perPage, relay.MaxPerPage, "a number from 1 to"),
	}
}
