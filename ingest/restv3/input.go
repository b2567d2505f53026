package restv3

import (
	"bytes"
	"context"
	"encoding/json"
	"net/url"
	"slices"
	"strings"

	"github.com/gofiber/fiber/v2"

	"github.com/penstock/penstock/ingest/httpd"
	"github.com/penstock/penstock/ingest/httpd/params"
	"github.com/penstock/penstock/relay"
	"github.com/penstock/penstock/relay/sim"
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

// create returns a function that passes what fields reads to do.
func create[A, B any](fields func(input) A, do func(context.Context, relay.AccountID, A) (B, error)) func(*fiber.Ctx) (B, error) {
	return func(c *fiber.Ctx) (b B, err error) {
		a, err := read(c, fields)
		if err != nil {
			return b, err
		}
		return do(c.UserContext(), httpd.AccountOf(c), a)
	}
}

func ofRecord[A any](name string, get func(context.Context, relay.AccountID, string) (A, error)) func(*fiber.Ctx) (A, error) {
	return func(c *fiber.Ctx) (A, error) {
		return get(c.UserContext(), httpd.AccountOf(c), params.Path(c, name))
	}
}

// find returns a function that lists records of the account.
func find[A any](do func(context.Context, relay.AccountID, sim.Query) ([]A, int, error)) func(*fiber.Ctx, sim.Query) ([]A, int, error) {
	return func(c *fiber.Ctx, q sim.Query) ([]A, int, error) { return do(c.UserContext(), httpd.AccountOf(c), q) }
}

// findIn returns a function that lists records of the record that a path parameter names.
func findIn[A any](name string, do func(context.Context, relay.AccountID, string, sim.Query) ([]A, int, error)) func(*fiber.Ctx, sim.Query) ([]A, int, error) {
	return func(c *fiber.Ctx, q sim.Query) ([]A, int, error) {
		return do(c.UserContext(), httpd.AccountOf(c), params.Path(c, name), q)
	}
}

const perPage = 25

// listInput returns the parameters of a list, and its query, which must be URL-encoded.
func listInput(c *fiber.Ctx) (i input, query url.Values, err error) {
	query, err = queryOf(c)
	return input{params.OfList(c, relay.FieldWords)}, query, err
}

func (i input) descending() bool {
	text := i.Text("order_direction")
	if text != "" && text != "asc" && text != "desc" {
		i.AddNamed("order_direction", "The %s must be asc or desc.")
	}
	return text == "desc"
}

// filters reads filters, in the order of their fields. A filter without a value is
// ignored: generated clients send the defaults of the other half.
func (i input) filters(query url.Values, filterable []string) (filters []sim.Filter) {
	if i.Value("filters") != nil {
		i.Add("filters", unknownField(filterable))
	}
	operators, values := map[string]string{}, map[string]string{}
	for name := range query {
		if !strings.HasPrefix(name, "filters[") {
			continue
		}
		// The name is filters[field][operator] or filters[field][value]. Errors name it with dots.
		inner, closed := strings.CutSuffix(strings.TrimPrefix(name, "filters["), "]")
		field, text, hasPart := strings.Cut(inner, "][")
		switch {
		case !closed || !hasPart || text != "operator" && text != "value" || !slices.Contains(filterable, field):
			dotted := strings.TrimSuffix(strings.NewReplacer("][", ".", "[", ".").Replace(name), "]")
			i.Add(dotted, unknownField(filterable))
		case text == "operator":
			operators[field] = query.Get(name)
		default:
			values[field] = query.Get(name)
		}
	}
	for _, field := range filterable {
		f, part, text := sim.ParseFilter(field, operators[field], values[field])
		switch {
		case text != "":
			i.Add("filters."+field+"."+part, "The "+part+" "+text)
		case f.Value != "":
			filters = append(filters, f)
		}
	}
	return filters
}

func unknownField(filterable []string) string {
	return "The field must be one of: " + strings.Join(filterable, ", ") + "."
}

type metaJSON struct {
	CurrentPage int `json:"current_page"`
	LastPage    int `json:"last_page"`
	PerPage     int `json:"per_page"`
	Total       int `json:"total"`
	Count       int `json:"count"` // on this page
}

// list returns a handler that answers with a page of a list of rendered records. Its parameters
// are page, per_page, order_by (one of columns), order_direction and
// filters[field][operator|value] for the filterable fields.
func list[A, B any](message string, columns, filterable []string, find func(*fiber.Ctx, sim.Query) ([]A, int, error), render func(A) B) fiber.Handler {
	return func(c *fiber.Ctx) error {
		i, query, err := listInput(c)
		if err != nil {
			return err
		}
		q := sim.Query{Page: i.Page(perPage), OrderBy: i.Text("order_by"), Descending: i.descending(), Filters: i.filters(query, filterable)}
		if q.OrderBy != "" && !slices.Contains(columns, q.OrderBy) {
			i.AddNamed("order_by", "The %s must be one of: "+strings.Join(columns, ", ")+".")
		}
		if err := i.Err(); err != nil {
			return err
		}
		found, total, err := find(c, q)
		if err != nil {
			return err
		}
		return paged(c, message, q.Page, httpd.Each(found, render), total)
	}
}

// paged answers with a page of a list. It writes into the memory that the server keeps for
// answers, so that pages leave little to the garbage collector.
func paged[T any](c *fiber.Ctx, message string, page relay.Page, records []T, total int) error {
	c.Set(fiber.HeaderContentType, fiber.MIMEApplicationJSON)
	e := json.NewEncoder(c.Response().BodyWriter())
	e.SetEscapeHTML(false)
	err := e.Encode(envelope{Success: true, Message: message, Data: records, Meta: &metaJSON{
		CurrentPage: page.Number, LastPage: page.Pages(total), PerPage: page.PerPage, Total: total, Count: len(records),
	}})
	c.Response().SetBody(bytes.TrimSuffix(c.Response().Body(), []byte("\n")))
	return err
}
