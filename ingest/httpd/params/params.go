// Package params reads the parameters of requests from the path, the query and a JSON body, and
// collects the problems of each parameter. The surface chooses the names of parameters in problems.
package params

import (
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"net/url"
	"reflect"
	"slices"
	"strings"

	"github.com/gofiber/fiber/v2"
	"github.com/gofiber/fiber/v2/utils"

	"github.com/penstock/penstock/relay"
)

// Path returns a decoded copy of a path parameter.
func Path(c *fiber.Ctx, name string) string {
	raw := utils.CopyString(c.Params(name))
	if text, err := url.PathUnescape(raw); err == nil {
		return text
	}
	return raw
}

// Query returns a copy of a parameter of the query.
func Query(c *fiber.Ctx, name string) string { return utils.CopyString(c.Query(name)) }

// maxUnknown is the maximum number of unknown parameters in an answer, and maxUnknownName the
// maximum length of their names in bytes.
const (
	maxUnknown     = 10
	maxUnknownName = 60
)

// RefuseUnknown adds a problem for each unknown parameter of the query. The parameters of the
// route are known. A parameter with brackets, for example filters[iccid][value], is known if the
// name before the brackets is known.
func RefuseUnknown(c *fiber.Ctx, p relay.Problems, known []string) {
	unknown := 0
	for key := range c.Context().QueryArgs().All() {
		name, _, _ := strings.Cut(string(key), "[")
		if name == "" || slices.Contains(known, name) || slices.Contains(c.Route().Params, name) {
			continue
		}
		name = strings.ToValidUTF8(string(key[:min(len(key), maxUnknownName)]), "\uFFFD")
		if unknown++; unknown <= maxUnknown && p[name] == nil {
			p.Add(name, "This parameter is unknown: "+acceptedText(known))
		}
	}
}

// WithoutQuery returns a handler that refuses parameters of the query, except parameters of the
// route.
func WithoutQuery(handle fiber.Handler) fiber.Handler {
	return func(c *fiber.Ctx) error {
		if err := OfList(c, nil).Err(); err != nil {
			return err
		}
		return handle(c)
	}
}

// acceptedText returns the text that lists the known parameters of an operation.
func acceptedText(known []string) string {
	if len(known) == 0 {
		return "the operation takes no parameters."
	}
	var names []string
	for _, name := range known {
		if !slices.Contains(names, name) {
			names = append(names, name)
		}
	}
	return "the operation takes " + strings.Join(names, ", ") + "."
}

// IsJSON reports whether the Content-Type of the body is application/json.
func IsJSON(c *fiber.Ctx) bool {
	media, _, _ := strings.Cut(c.Get(fiber.HeaderContentType), ";")
	return strings.EqualFold(strings.TrimSpace(media), fiber.MIMEApplicationJSON)
}

// Errors for bodies whose Content-Type is not application/json or that are not valid JSON.
var (
	ErrNotJSON     = fiber.NewError(fiber.StatusUnsupportedMediaType, "Content-Type must be application/json.")
	ErrInvalidJSON = fiber.NewError(fiber.StatusUnprocessableEntity, "Invalid JSON.")
)

// Errors for bodies that are not a single JSON object.
var (
	ErrSyntax    = errors.New("Invalid JSON.")
	ErrNotObject = errors.New("The body must be an object.")
)

// Object parses a body that is a single JSON object. Numbers become json.Number. The error is
// ErrSyntax or ErrNotObject.
func Object(body []byte) (map[string]any, error) {
	d := json.NewDecoder(bytes.NewReader(body))
	d.UseNumber()
	var v any
	if err := d.Decode(&v); err != nil {
		return nil, ErrSyntax
	}
	if _, err := d.Token(); err != io.EOF {
		return nil, ErrSyntax
	}
	members, ok := v.(map[string]any)
	if !ok {
		return nil, ErrNotObject
	}
	return members, nil
}

// Decode decodes a JSON value into v and ignores unknown fields. The error for a value of the
// wrong type is relay.KindInvalid and names the field; any other error is ErrInvalidJSON.
func Decode(raw []byte, v any) error { return decode(json.NewDecoder(bytes.NewReader(raw)), v) }

// DecodeStrictly decodes like Decode, but refuses unknown fields with relay.KindInvalid.
func DecodeStrictly(raw []byte, v any) error {
	d := json.NewDecoder(bytes.NewReader(raw))
	d.DisallowUnknownFields()
	return decode(d, v)
}

func decode(d *json.Decoder, v any) error {
	err := d.Decode(v)
	if typeErr, ok := errors.AsType[*json.UnmarshalTypeError](err); ok && typeErr.Field != "" {
		return relay.Invalid(typeErr.Field, "The "+relay.FieldWords(typeErr.Field)+" must be "+TypeName(typeErr.Type)+".")
	}
	if err != nil {
		if name, ok := strings.CutPrefix(err.Error(), "json: unknown field "); ok {
			return relay.Invalid(strings.Trim(name, `"`), "This field is unknown.")
		}
		return ErrInvalidJSON
	}
	if _, err := d.Token(); err != io.EOF {
		return ErrInvalidJSON
	}
	return nil
}

// TypeName returns the name of the values of a type in problems.
func TypeName(t reflect.Type) string {
	switch t.Kind() {
	case reflect.String:
		return "a string"
	case reflect.Bool:
		return "true or false"
	case reflect.Int, reflect.Int64:
		return "an integer"
	case reflect.Float64:
		return "a number"
	case reflect.Slice:
		return "an array"
	}
	return "an object"
}

// Source returns a parameter. value is nil, a string, a QueryText, a bool, a json.Number, a []any
// or a map[string]any. present reports whether the request has the parameter, which may be null.
type Source func(name string) (value any, present bool)

// QueryText is a value of a query. Unlike a string of a JSON body, it may be a boolean, a
// number, or a list of one entry.
type QueryText string

// OfObject returns a Source of the members of an object.
func OfObject(members map[string]any) Source {
	return func(name string) (any, bool) {
		v, present := members[name]
		return v, present
	}
}

// OfQuery returns a Source of the first value of each parameter of the query. Empty values are
// missing.
func OfQuery(c *fiber.Ctx) Source {
	return func(name string) (any, bool) {
		if text := Query(c, name); text != "" {
			return QueryText(text), true
		}
		return nil, false
	}
}

// OfValues returns a Source of the parameters of a query. name[] is the same as name. Several
// values are a list. A single value of name[] is a list if lists is set.
func OfValues(q url.Values, lists bool) Source {
	return func(name string) (any, bool) {
		values := slices.Concat(q[name], q[name+"[]"])
		switch {
		case len(values) == 0:
			return nil, false
		case len(values) == 1 && !(lists && q[name] == nil):
			return QueryText(values[0]), true
		}
		list := make([]any, len(values))
		for i, v := range values {
			list[i] = v
		}
		return list, true
	}
}

// Or returns a Source that reads parameters that are missing or null in s from fallback.
func (s Source) Or(fallback Source) Source {
	return func(name string) (any, bool) {
		v, present := s(name)
		if v != nil {
			return v, true
		}
		if v, found := fallback(name); found {
			return v, true
		}
		return nil, present
	}
}
