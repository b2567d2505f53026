package restv3

import (
	"context"
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

// input has the parameters of an operation: the members of the body, and the parameters of the
// query that the body does not have.
type input struct{ *params.Input }

// inputFrom returns the parameters of a source.
func inputFrom(get params.Source) input { return input{params.New(get, relay.FieldWords)} }

// inputOf reads the parameters of a request from a JSON object, the query, or both.
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
	query, err := queryOf(c)
	if err != nil {
		return input{}, err
	}
	return input{params.OfRequest(c, params.OfObject(body).Or(params.OfValues(query, true)), relay.FieldWords)}, nil
}

// read calls fields with the parameters of a request and returns its result.
func read[T any](c *fiber.Ctx, fields func(input) T) (value T, err error) {
	i, err := inputOf(c)
	if err != nil {
		return value, err
	}
	value = fields(i)
	return value, i.Err()
}

// change returns a function that calls do with the id in the path parameter name and the result
// of fields.
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
	query, err := url.ParseQuery(string(c.Request().URI().QueryString()))
	if err != nil {
		return nil, relay.Invalid("query", "The query must be URL-encoded.")
	}
	return query, nil
}

// create returns a function that calls do with the result of fields.
func create[A, B any](fields func(input) A, do func(context.Context, relay.AccountID, A) (B, error)) func(*fiber.Ctx) (B, error) {
	return func(c *fiber.Ctx) (b B, err error) {
		a, err := read(c, fields)
		if err != nil {
			return b, err
		}
		return do(c.UserContext(), httpd.AccountOf(c), a)
	}
}

func getByID[A any](name string, get func(context.Context, relay.AccountID, string) (A, error)) func(*fiber.Ctx) (A, error) {
	return func(c *fiber.Ctx) (A, error) {
		return get(c.UserContext(), httpd.AccountOf(c), params.Path(c, name))
	}
}

// find returns a function that lists records of the account.
func find[A any](do func(context.Context, relay.AccountID, sim.Query) ([]A, int, error)) func(*fiber.Ctx, sim.Query) ([]A, int, error) {
	return func(c *fiber.Ctx, q sim.Query) ([]A, int, error) { return do(c.UserContext(), httpd.AccountOf(c), q) }
}

// findIn returns a function that lists the SIMs of the record with the id in the path parameter
// name.
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

// filters reads the filters, in the order of filterable. It ignores a filter without a value,
// because generated clients send the default operator without a value.
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

// list returns a handler that answers with a page of rendered records. Its parameters are page,
// per_page, order_by (one of columns), order_direction, and filters[field][operator|value] for the
// filterable fields.
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
		return sendPage(c, message, q.Page, httpd.Each(found, render), total)
	}
}

func sendPage[T any](c *fiber.Ctx, message string, page relay.Page, records []T, total int) error {
	return c.JSON(envelope{Success: true, Message: message, Data: records, Meta: &metaJSON{
		CurrentPage: page.Number, LastPage: page.Pages(total), PerPage: page.PerPage, Total: total, Count: len(records),
	}})
}
