// Package params reads the parameters of requests: the members of a JSON body, those
// of the query and those of the path. It collects what is wrong with them under their
// names; how texts name a parameter is for the surface to say.
package params

import (
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"net/url"
	"slices"
	"strings"

	"github.com/gofiber/fiber/v2"
	"github.com/gofiber/fiber/v2/utils"
)

// Path returns a path parameter, decoded, and copied out of Fiber's buffer.
func Path(c *fiber.Ctx, name string) string {
	raw := utils.CopyString(c.Params(name))
	if text, err := url.PathUnescape(raw); err == nil {
		return text
	}
	return raw
}

// Query returns a parameter of the query, copied out of Fiber's buffer.
func Query(c *fiber.Ctx, name string) string { return utils.CopyString(c.Query(name)) }

// IsJSON reports whether the body is declared to be JSON.
func IsJSON(c *fiber.Ctx) bool {
	media, _, _ := strings.Cut(c.Get(fiber.HeaderContentType), ";")
	return strings.EqualFold(strings.TrimSpace(media), fiber.MIMEApplicationJSON)
}

// ErrNotJSON refuses a body of another type.
var ErrNotJSON = fiber.NewError(fiber.StatusUnsupportedMediaType, "Content-Type must be application/json.")

// Errors of bodies that are not one JSON object.
var (
	ErrSyntax    = errors.New("Invalid JSON.")
	ErrNotObject = errors.New("The body must be an object.")
)

// Object reads a body that is one JSON object; its numbers are json.Number. The error
// is ErrSyntax or ErrNotObject.
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

// Source finds a parameter: nil, a string, a bool, a json.Number, a []any or a
// map[string]any. given reports whether it is there; null is there.
type Source func(name string) (value any, given bool)

// OfObject returns the members of an object.
func OfObject(members map[string]any) Source {
	return func(name string) (any, bool) {
		v, given := members[name]
		return v, given
	}
}

// OfQuery returns the first value of each parameter of the request's query.
func OfQuery(c *fiber.Ctx) Source {
	return func(name string) (any, bool) {
		if text := Query(c, name); text != "" {
			return text, true
		}
		return nil, false
	}
}

// OfValues returns the parameters of a query. name[] is the same as name; several
// values are a list, and so is one of name[] if lists is set.
func OfValues(q url.Values, lists bool) Source {
	return func(name string) (any, bool) {
		all := slices.Concat(q[name], q[name+"[]"])
		switch {
		case len(all) == 0:
			return nil, false
		case len(all) == 1 && !(lists && q[name] == nil):
			return all[0], true
		}
		list := make([]any, len(all))
		for i, v := range all {
			list[i] = v
		}
		return list, true
	}
}

// Or returns the parameters of a source, and of another those that the first does not
// have or has as null.
func (s Source) Or(other Source) Source {
	return func(name string) (any, bool) {
		v, given := s(name)
		if v != nil {
			return v, true
		}
		if v, also := other(name); also {
			return v, true
		}
		return nil, given
	}
}
