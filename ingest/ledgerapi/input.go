package ledgerapi

import (
	"bytes"
	"encoding/json"
	"strings"

	"github.com/gofiber/fiber/v2"
	"github.com/gofiber/fiber/v2/utils"

	"github.com/penstock/penstock/ingest/httpd"
	"github.com/penstock/penstock/ingest/httpd/params"
	"github.com/penstock/penstock/relay"
)

// maxBody is the largest length of a body.
const maxBody = 1 << 20

// input has the parameters of an operation: members of the body, else parameters of the
// query.
type input struct {
	*params.Input
	c    *fiber.Ctx
	body map[string]json.RawMessage
}

func queryOf(c *fiber.Ctx) *input {
	i := &input{c: c}
	i.Input = params.OfRequest(c, i.decoded, relay.FieldWords)
	return i
}

func listInput(c *fiber.Ctx) *input { return &input{c: c, Input: params.OfList(c, relay.FieldWords)} }

// read reads the body, if there is one, and copies it out of the request.
func read(c *fiber.Ctx) (*input, error) {
	i := queryOf(c)
	raw, err := httpd.Body(c, maxBody)
	if err != nil || len(raw) == 0 {
		return i, err
	}
	if !strings.HasPrefix(strings.ToLower(c.Get(fiber.HeaderContentType)), fiber.MIMEApplicationJSON) {
		return nil, params.ErrNotJSON
	}
	if json.Unmarshal(bytes.Clone(raw), &i.body) != nil || i.body == nil {
		return nil, fiber.NewError(fiber.StatusUnprocessableEntity, "Invalid JSON.")
	}
	return i, nil
}

// field returns the JSON of a field; that of a parameter is its text.
func (i *input) field(name string) (value json.RawMessage, query string) {
	i.Know(name)
	value = i.body[name]
	if value == nil || string(value) == "null" {
		return nil, params.Query(i.c, name)
	}
	return value, ""
}

// decoded returns a field of the body with its value, else one of the query.
func (i *input) decoded(name string) (any, bool) {
	raw, query := i.field(name)
	if raw == nil {
		return params.QueryText(query), query != ""
	}
	var v any
	if json.Unmarshal(raw, &v) != nil {
		return raw, true // a number that no float64 holds
	}
	return v, true
}

// list reads a field that is an array of texts; in the query it is JSON, or texts
// with commas between.
func (i *input) list(name string) (texts []string) {
	value, query := i.field(name)
	switch {
	case value == nil && query == "":
		return nil
	case value == nil && !strings.HasPrefix(query, "["):
		return strings.Split(query, ",")
	case value == nil:
		value = json.RawMessage(query)
	}
	if json.Unmarshal(value, &texts) != nil {
		i.Wrong(name, "The %s must be an array of strings.")
	}
	return texts
}

// object reads a field that is a JSON object; nil if there is none. Whether it is
// one, the service says.
func (i *input) object(name string) json.RawMessage {
	value, query := i.field(name)
	if value == nil && query != "" {
		value = json.RawMessage(query)
		if !json.Valid(value) {
			i.Wrong(name, "The %s must be an object.")
			return nil
		}
	}
	return value
}

// private reads the private token: a field, a parameter or a header.
func (i *input) private() string {
	if text := i.Text("private_token"); text != "" {
		return text
	}
	return utils.CopyString(i.c.Get("X-Private-Token"))
}
