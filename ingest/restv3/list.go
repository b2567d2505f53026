package restv3

import (
	"bytes"
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

// perPage is how many records a page of a v3 list has unless asked otherwise.
const perPage = 25

// maxPage keeps the offset of a page within an integer.
const maxPage = 1_000_000_000

// listInput returns the parameters of a list, and its query, which must be URL-encoded.
func listInput(c *fiber.Ctx) (i input, query url.Values, err error) {
	query, err = queryOf(c)
	return input{params.OfList(c, relay.FieldWords)}, query, err
}

// listing reads the list parameters: page, per_page, order_by, order_direction
// and filters[field][operator|value].
func listing(c *fiber.Ctx, columns, filterable []string) (sim.Query, error) {
	i, query, err := listInput(c)
	if err != nil {
		return sim.Query{}, err
	}
	q := sim.Query{Page: i.page(), OrderBy: i.Text("order_by"), Descending: i.descending()}
	if q.OrderBy != "" && !slices.Contains(columns, q.OrderBy) {
		i.AddNamed("order_by", "The %s must be one of: "+strings.Join(columns, ", ")+".")
	}
	q.Filters = i.filters(query, filterable)
	return q, i.Err()
}

// page reads page and per_page.
func (i input) page() relay.Page {
	return relay.Page{
		Number:  i.Int("page", 1, maxPage, "a number from 1 to"),
		PerPage: i.Int("per_page", perPage, relay.MaxPerPage, "a number from 1 to"),
	}
}

// descending reads order_direction.
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
		field, text, ok := bracketed(name)
		switch {
		case !ok || !slices.Contains(filterable, field):
			i.Add(dotted(name), unknownField(filterable))
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

// unknownField says which fields have filters.
func unknownField(filterable []string) string {
	return "The field must be one of: " + strings.Join(filterable, ", ") + "."
}

// bracketed reads filters[field][half].
func bracketed(name string) (field, text string, ok bool) {
	inner, ok := strings.CutPrefix(name, "filters[")
	field, text, both := strings.Cut(strings.TrimSuffix(inner, "]"), "][")
	return field, text, ok && both && strings.HasSuffix(inner, "]") && (text == "operator" || text == "value")
}

// dotted names a parameter as errors do.
func dotted(name string) string {
	return strings.TrimSuffix(strings.NewReplacer("][", ".", "[", ".").Replace(name), "]")
}

// metaJSON is the meta of lists.
type metaJSON struct {
	CurrentPage int `json:"current_page"`
	LastPage    int `json:"last_page"`
	PerPage     int `json:"per_page"`
	Total       int `json:"total"`
	Count       int `json:"count"` // on this page
}

// list returns a handler that answers with a page of a list, as its records are shown. It
// is ordered by a column, and filtered by those that are filterable.
func list[A, B any](message string, columns, filterable []string, find func(*fiber.Ctx, sim.Query) ([]A, int, error), render func(A) B) fiber.Handler {
	return func(c *fiber.Ctx) error {
		q, err := listing(c, columns, filterable)
		if err != nil {
			return err
		}
		found, total, err := find(c, q)
		if err != nil {
			return err
		}
		return paged(c, message, q.Page, httpd.Each(found, render), total)
	}
}

// paged answers with a page of a list.
func paged[T any](c *fiber.Ctx, message string, page relay.Page, records []T, total int) error {
	return written(c, envelope{Success: true, Message: message, Data: records, Meta: &metaJSON{
		CurrentPage: page.Number, LastPage: page.Pages(total), PerPage: page.PerPage, Total: total, Count: len(records),
	}})
}

// written is an answer of many records, written into the memory that the server
// keeps for answers: what pages leave behind decides how often they meet the
// collector of garbage.
func written(c *fiber.Ctx, answer envelope) error {
	c.Set(fiber.HeaderContentType, fiber.MIMEApplicationJSON)
	e := json.NewEncoder(c.Response().BodyWriter())
	e.SetEscapeHTML(false)
	err := e.Encode(answer)
	c.Response().SetBody(bytes.TrimSuffix(c.Response().Body(), []byte("\n")))
	return err
}
