package restv3

import (
	"bytes"
	"encoding/json"
	"io"
	"net/url"
	"strconv"
	"strings"

	"github.com/gofiber/fiber/v2"
	"github.com/gofiber/fiber/v2/utils"

	"github.com/penstock/penstock/ingest/httpd"
	"github.com/penstock/penstock/relay"
)

// maxBody is the longest body of an operation, in bytes.
const maxBody = 1 << 20

// input is the parameters of an operation: the body's, and those of the query
// that the body does not have.
type input map[string]any

// inputOf reads a JSON object, the query, or both.
func inputOf(c *fiber.Ctx) (input, error) {
	in := input{}
	raw, err := httpd.Body(c, maxBody)
	if err != nil {
		return nil, err
	}
	if len(raw) > 0 {
		if !isJSON(c.Get(fiber.HeaderContentType)) {
			return nil, fiber.NewError(fiber.StatusUnsupportedMediaType, "Content-Type must be application/json.")
		}
		if err := in.read(raw); err != nil {
			return nil, err
		}
	}
	asked, err := queryOf(c)
	if err != nil {
		return nil, err
	}
	for name, values := range asked {
		in.add(name, values)
	}
	return in, nil
}

func isJSON(contentType string) bool {
	media, _, _ := strings.Cut(contentType, ";")
	return strings.EqualFold(strings.TrimSpace(media), fiber.MIMEApplicationJSON)
}

// queryOf reads the query, copied out of Fiber's buffer.
func queryOf(c *fiber.Ctx) (url.Values, error) {
	asked, err := url.ParseQuery(string(c.Request().URI().QueryString()))
	if err != nil {
		return nil, wrong("query", "The query must be URL-encoded.")
	}
	return asked, nil
}

// wrong is an error about one parameter.
func wrong(field, text string) error {
	return relay.Problems{field: {text}}.Err()
}

func (in input) read(raw []byte) error {
	d := json.NewDecoder(bytes.NewReader(raw))
	d.UseNumber()
	var body any
	if err := d.Decode(&body); err != nil {
		return wrong("body", "Invalid JSON.")
	}
	if _, err := d.Token(); err != io.EOF {
		return wrong("body", "Invalid JSON.")
	}
	fields, ok := body.(map[string]any)
	if !ok {
		return wrong("body", "The body must be an object.")
	}
	for name, v := range fields {
		in[name] = v
	}
	return nil
}

// add takes a parameter of the query, one[] and two of a name as a list.
func (in input) add(name string, values []string) {
	short, list := strings.CutSuffix(name, "[]")
	if in[short] != nil {
		return
	}
	if len(values) == 1 && !list {
		in[short] = values[0]
		return
	}
	all := make([]any, len(values))
	for i, v := range values {
		all[i] = v
	}
	in[short] = all
}

// text returns a string; null is not there.
func (in input) text(p relay.Problems, name string) string {
	if given := in.given(p, name); given != nil {
		return *given
	}
	return ""
}

// given returns a string, nil if it is not there.
func (in input) given(p relay.Problems, name string) *string {
	switch v := in[name].(type) {
	case nil:
	case string:
		return &v
	default:
		p.AddNamed(name, "The %s must be a string.")
	}
	return nil
}

// texts returns a list of strings, of which the query may give one alone.
func (in input) texts(p relay.Problems, name string) (out []string) {
	all, ok := in[name].([]any)
	if one, alone := in[name].(string); alone {
		all, ok = []any{one}, true
	}
	if !ok && in[name] != nil {
		p.AddNamed(name, "The %s must be an array.")
	}
	for _, v := range all {
		s, ok := v.(string)
		if !ok {
			p.AddNamed(name, "The %s must be an array of strings.")
			return nil
		}
		out = append(out, s)
	}
	return out
}

// integer returns a whole number, nil if it is not there; 1e3 and 1.0 are whole.
func (in input) integer(p relay.Problems, name string) *int64 {
	var text string
	switch v := in[name].(type) {
	case nil:
		return nil
	case json.Number:
		text = v.String()
	case string:
		text = v
	}
	if n, err := strconv.ParseInt(text, 10, 64); err == nil {
		return &n
	}
	const most = 1 << 53 // the whole numbers that every JSON reader keeps
	if f, err := strconv.ParseFloat(text, 64); err == nil && f == float64(int64(f)) && f <= most && f >= -most {
		return new(int64(f))
	}
	p.AddNamed(name, "The %s must be an integer.")
	return nil
}

// null reports whether the body says null.
func (in input) null(name string) bool {
	v, given := in[name]
	return given && v == nil
}

// flag returns a truth, nil if it is not there; a query has it as a word.
func (in input) flag(p relay.Problems, name string) *bool {
	switch v := in[name].(type) {
	case nil:
		return nil
	case bool:
		return &v
	case string:
		if v == "true" || v == "1" || v == "false" || v == "0" {
			return new(v == "true" || v == "1")
		}
	}
	p.AddNamed(name, "The %s must be true or false.")
	return nil
}

// object returns the parameters inside one, nil if it is none.
func object(v any) input {
	fields, _ := v.(map[string]any)
	return fields
}

// param copies a path parameter out of Fiber's buffer, decoded.
func param(c *fiber.Ctx, name string) string {
	raw := utils.CopyString(c.Params(name))
	if text, err := url.PathUnescape(raw); err == nil {
		return text
	}
	return raw
}
