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

	"github.com/penstock/penstock/relay"
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

// maxUnknown bounds the unknown parameters that an answer names, and maxUnknownName the
// bytes of each.
const (
	maxUnknown     = 10
	maxUnknownName = 60
)

// RefuseUnknown adds a problem for each parameter of the query that is not known. The
// parameters of the route may also stand in the query, and filters[iccid][value] is known
// as filters.
func RefuseUnknown(c *fiber.Ctx, p relay.Problems, known []string) {
	unknown := 0
	for key := range c.Context().QueryArgs().All() {
		name, _, _ := strings.Cut(string(key), "[")
		if name == "" || slices.Contains(known, name) || slices.Contains(c.Route().Params, name) {
			continue
		}
		name = strings.ToValidUTF8(string(key[:min(len(key), maxUnknownName)]), "\uFFFD")
		if unknown++; unknown <= maxUnknown && p[name] == nil {
			p.Add(name, "This parameter is unknown: "+takes(known))
		}
	}
}

// WithoutQuery returns a handler of an operation whose query has no parameters: it refuses
// all except those of the route.
func WithoutQuery(handle fiber.Handler) fiber.Handler {
	return func(c *fiber.Ctx) error {
		if err := OfList(c, nil).Err(); err != nil {
			return err
		}
		return handle(c)
	}
}

// takes lists the parameters of an operation.
func takes(known []string) string {
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

// Source finds a parameter: nil, a string, a QueryText, a bool, a json.Number, a []any or
// a map[string]any. given reports whether it is there; null is there.
type Source func(name string) (value any, present bool)

// QueryText is a value of a query, where all values are texts. Unlike a string of a JSON
// body, it may stand for a boolean, for a number, and for a list of one entry.
type QueryText string

// OfObject returns the members of an object.
func OfObject(members map[string]any) Source {
	return func(name string) (any, bool) {
		v, present := members[name]
		return v, present
	}
}

// OfQuery returns the first value of each parameter of the request's query.
func OfQuery(c *fiber.Ctx) Source {
	return func(name string) (any, bool) {
		if text := Query(c, name); text != "" {
			return QueryText(text), true
		}
		return nil, false
	}
}

// OfValues returns the parameters of a query. name[] is the same as name; several
// values are a list, and so is one of name[] if lists is set.
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

// Or returns the parameters of a source, and of another those that the first does not
// have or has as null.
func (s Source) Or(fallback Source) Source {
	return func(name string) (any, bool) {
		v, present := s(name)
		if v != nil {
			return v, true
		}
		if v, also := fallback(name); also {
			return v, true
		}
		return nil, present
	}
}
