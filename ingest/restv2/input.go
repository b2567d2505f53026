package restv2

import (
	"bytes"
	"encoding/json"
	"io"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"

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
	in, asked := input{}, string(c.Request().URI().QueryString())
	raw, err := httpd.Body(c, maxBody)
	if err != nil {
		return nil, err
	}
	empty := len(raw) == 0
	if !isJSON(c.Get(fiber.HeaderContentType)) && (!empty || asked == "") {
		return nil, fiber.NewError(fiber.StatusUnsupportedMediaType, "Content-Type must be application/json.")
	}
	if !empty {
		if err := in.read(raw); err != nil {
			return nil, err
		}
	}
	q, err := url.ParseQuery(asked)
	if err != nil {
		return nil, relay.Problems{"query": {"The query is not URL-encoded."}}.Err()
	}
	for name := range q {
		name = strings.TrimSuffix(name, "[]")
		in.fromQuery(name, slices.Concat(q[name], q[name+"[]"]))
	}
	return in, nil
}

func isJSON(contentType string) bool {
	media, _, _ := strings.Cut(contentType, ";")
	return strings.EqualFold(strings.TrimSpace(media), fiber.MIMEApplicationJSON)
}

func (in input) read(raw []byte) error {
	if !utf8.Valid(raw) || unpaired(raw) {
		return relay.Problems{"body": {"The body is not valid UTF-8."}}.Err()
	}
	d := json.NewDecoder(bytes.NewReader(raw))
	d.UseNumber()
	var body any
	if err := d.Decode(&body); err != nil {
		return relay.Problems{"body": {"Invalid JSON."}}.Err()
	}
	if _, err := d.Token(); err != io.EOF {
		return relay.Problems{"body": {"Invalid JSON."}}.Err()
	}
	fields, ok := body.(map[string]any)
	if !ok {
		return relay.Problems{"body": {"The body must be an object."}}.Err()
	}
	for name, v := range fields {
		in[name] = v
	}
	return nil
}

// unpaired reports whether an escape is half of a surrogate pair, which encoding/json
// would replace by another character, in a message that is charged.
func unpaired(raw []byte) bool {
	var high bool // the escape before was the first half
	for len(raw) > 0 {
		code, size := rune(-1), 1
		if raw[0] == '\\' {
			size = min(2, len(raw))
			if len(raw) >= 6 && raw[1] == 'u' {
				n, err := strconv.ParseUint(string(raw[2:6]), 16, 16)
				if err == nil {
					code, size = rune(n), 6
				}
			}
		}
		low := code >= 0xdc00 && code <= 0xdfff
		if low != high {
			return true
		}
		high = code >= 0xd800 && code <= 0xdbff
		raw = raw[size:]
	}
	return high
}

func (in input) fromQuery(name string, values []string) {
	if in[name] != nil {
		return
	}
	if len(values) == 1 {
		in[name] = values[0]
		return
	}
	all := make([]any, len(values))
	for i, v := range values {
		all[i] = v
	}
	in[name] = all
}

// text returns a string; null is not there.
func (in input) text(p relay.Problems, name string) string {
	switch v := in[name].(type) {
	case nil:
	case string:
		return v
	default:
		p.Add(name, "The "+name+" must be a string.")
	}
	return ""
}

// texts returns an array of strings, of which the query may give one alone.
func (in input) texts(p relay.Problems, name string) (out []string) {
	all, ok := in[name].([]any)
	if one, alone := in[name].(string); alone {
		all, ok = []any{one}, true
	}
	if !ok && in[name] != nil {
		p.Add(name, "The "+name+" must be an array.")
	}
	for _, v := range all {
		s, ok := v.(string)
		if !ok {
			p.Add(name, "The "+name+" must be an array of strings.")
			return nil
		}
		out = append(out, s)
	}
	return out
}

// param copies a path parameter out of Fiber's buffer, decoded.
func param(c *fiber.Ctx, name string) string {
	raw := utils.CopyString(c.Params(name))
	if text, err := url.PathUnescape(raw); err == nil {
		return text
	}
	return raw
}

func query(c *fiber.Ctx, name string) string { return utils.CopyString(c.Query(name)) }
