package restv3

import (
	"context"
	"net/url"

	"github.com/gofiber/fiber/v2"

	"github.com/penstock/penstock/ingest/httpd"
	"github.com/penstock/penstock/ingest/httpd/params"
	"github.com/penstock/penstock/relay"
)

// maxBody is the longest body of an operation, in bytes.
const maxBody = 1 << 20

// input is the parameters of an operation: the body's, and those of the query
// that the body does not have.
type input struct{ *params.Input }

// inputFrom returns the parameters of a source. Texts name them in words.
func inputFrom(get params.Source) input { return input{params.New(get, relay.FieldWords)} }

// inputOf reads a JSON object, the query, or both.
func inputOf(c *fiber.Ctx) (input, error) {
	raw, err := httpd.Body(c, maxBody)
	if err != nil {
		return input{}, err
	}
	var body map[string]any
	if len(raw) > 0 {
		if !params.IsJSON(c) {
			return input{}, params.ErrNotJSON
		}
		if body, err = params.Object(raw); err != nil {
			return input{}, relay.Invalid("body", err.Error())
		}
	}
	requested, err := queryOf(c)
	if err != nil {
		return input{}, err
	}
	return input{params.OfRequest(c, params.OfObject(body).Or(params.OfValues(requested, true)), relay.FieldWords)}, nil
}

// read returns what fields reads from the parameters of a request.
func read[T any](c *fiber.Ctx, fields func(input) T) (value T, err error) {
	i, err := inputOf(c)
	if err != nil {
		return value, err
	}
	value = fields(i)
	return value, i.Err()
}

// change returns a function that applies do to the record that a path parameter names,
// with what fields reads.
func change[A, B any](name string, fields func(input) A, do func(context.Context, relay.AccountID, string, A) (B, error)) func(*fiber.Ctx) (B, error) {
	return func(c *fiber.Ctx) (b B, err error) {
		a, err := read(c, fields)
		if err != nil {
			return b, err
		}
		return do(c.UserContext(), httpd.AccountOf(c), params.Path(c, name), a)
	}
}

// queryOf reads the query, copied out of Fiber's buffer.
func queryOf(c *fiber.Ctx) (url.Values, error) {
	requested, err := url.ParseQuery(string(c.Request().URI().QueryString()))
	if err != nil {
		return nil, relay.Invalid("query", "The query must be URL-encoded.")
	}
	return requested, nil
}
