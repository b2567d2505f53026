package ledgerapi

import (
	"bytes"
	"encoding/json"
	"net/url"
	"strings"

	"github.com/gofiber/fiber/v2"
	"github.com/gofiber/fiber/v2/utils"

	"github.com/penstock/penstock/ingest/httpd"
	"github.com/penstock/penstock/relay"
)

// maxBody is how long a body may be.
const maxBody = 1 << 20

// input is what an operation was given: members of the body, else parameters of
// the query. Each of its readers notes what is wrong with a field.
type input struct {
	c        *fiber.Ctx
	body     map[string]json.RawMessage
	problems map[string][]string
}

// read reads the body, if there is one, and copies it out of the request.
func read(c *fiber.Ctx) (*input, error) {
	in := &input{c: c, problems: make(map[string][]string)}
	raw, err := httpd.Body(c, maxBody)
	if err != nil || len(raw) == 0 {
		return in, err
	}
	if !strings.HasPrefix(strings.ToLower(c.Get(fiber.HeaderContentType)), fiber.MIMEApplicationJSON) {
		return nil, fiber.NewError(fiber.StatusUnsupportedMediaType, "Content-Type must be application/json.")
	}
	if json.Unmarshal(bytes.Clone(raw), &in.body) != nil || in.body == nil {
		return nil, fiber.NewError(fiber.StatusUnprocessableEntity, "Invalid JSON.")
	}
	return in, nil
}

// field returns the JSON of a field; that of a parameter is its text.
func (in *input) field(name string) (value json.RawMessage, query string) {
	value = in.body[name]
	if value == nil || string(value) == "null" {
		return nil, utils.CopyString(in.c.Query(name))
	}
	return value, ""
}

// text reads a field that is a text.
func (in *input) text(name string) (out string) {
	value, query := in.field(name)
	if value == nil {
		return query
	}
	if json.Unmarshal(value, &out) != nil {
		in.wrong(name, "a string")
	}
	return out
}

// list reads a field that is an array of texts; in the query it is JSON, or texts
// with commas between.
func (in *input) list(name string) (out []string) {
	value, query := in.field(name)
	switch {
	case value == nil && query == "":
		return nil
	case value == nil && !strings.HasPrefix(query, "["):
		return strings.Split(query, ",")
	case value == nil:
		value = json.RawMessage(query)
	}
	if json.Unmarshal(value, &out) != nil {
		in.wrong(name, "an array of strings")
	}
	return out
}

// object reads a field that is a JSON object; nil if there is none. Whether it is
// one, the service says.
func (in *input) object(name string) json.RawMessage {
	value, query := in.field(name)
	if value == nil && query != "" {
		value = json.RawMessage(query)
		if !json.Valid(value) {
			in.wrong(name, "an object")
			return nil
		}
	}
	return value
}

// private reads the private token: a field, a parameter or a header.
func (in *input) private() string {
	if text := in.text("private_token"); text != "" {
		return text
	}
	return utils.CopyString(in.c.Get("X-Private-Token"))
}

func (in *input) wrong(name, want string) {
	in.problems[name] = append(in.problems[name], "The "+strings.ReplaceAll(name, "_", " ")+" must be "+want+".")
}

// err is Invalid if something is wrong with a field.
func (in *input) err() error {
	if len(in.problems) == 0 {
		return nil
	}
	return &relay.Error{Kind: relay.KindInvalid, Message: "invalid fields", Fields: in.problems}
}

// param copies a path parameter out of the request, decoded.
func param(c *fiber.Ctx, name string) string {
	raw := utils.CopyString(c.Params(name))
	if text, err := url.PathUnescape(raw); err == nil {
		return text
	}
	return raw
}
