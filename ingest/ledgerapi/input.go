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

// maxBody is the longest body of an operation, in bytes.
const maxBody = 1 << 20

// input has the parameters of an operation: the members of the body, and the parameters of the
// query that the body does not have.
type input struct {
	*params.Input
	c    *fiber.Ctx
	body map[string]json.RawMessage
}

func newInput(c *fiber.Ctx) *input {
	i := &input{c: c}
	i.Input = params.OfRequest(c, i.decodeField, relay.FieldWords)
	return i
}

func listInput(c *fiber.Ctx) *input { return &input{c: c, Input: params.OfList(c, relay.FieldWords)} }

// read reads the parameters of a request, which may have no body.
func read(c *fiber.Ctx) (*input, error) {
	i := newInput(c)
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

// field returns the JSON of a member of the body. If the member is missing or null, field returns
// the text of the query parameter instead.
func (i *input) field(name string) (value json.RawMessage, query string) {
	i.MarkKnown(name)
	value = i.body[name]
	if value == nil || string(value) == "null" {
		return nil, params.Query(i.c, name)
	}
	return value, ""
}

// decodeField is the params.Source of the input.
func (i *input) decodeField(name string) (any, bool) {
	raw, query := i.field(name)
	if raw == nil {
		return params.QueryText(query), query != ""
	}
	var v any
	if json.Unmarshal(raw, &v) != nil {
		return raw, true // a number out of the range of float64
	}
	return v, true
}

// texts reads an array of strings. In the query it is JSON, or strings separated by commas.
func (i *input) texts(name string) (list []string) {
	value, query := i.field(name)
	switch {
	case value == nil && query == "":
		return nil
	case value == nil && !strings.HasPrefix(query, "["):
		return strings.Split(query, ",")
	case value == nil:
		value = json.RawMessage(query)
	}
	if json.Unmarshal(value, &list) != nil {
		i.AddProblem(name, "The %s must be an array of strings.")
	}
	return list
}

// json reads a JSON value, nil if it is missing. The service checks that the value is an object.
func (i *input) json(name string) json.RawMessage {
	value, query := i.field(name)
	if value == nil && query != "" {
		value = json.RawMessage(query)
		if !json.Valid(value) {
			i.AddProblem(name, "The %s must be an object.")
			return nil
		}
	}
	return value
}

// privateToken reads the private token from the parameters or, if they have none, from the header
// X-Private-Token.
func (i *input) privateToken() string {
	if text := i.Text("private_token"); text != "" {
		return text
	}
	return utils.CopyString(i.c.Get("X-Private-Token"))
}
