package restv3

import (
	"bytes"
	"encoding/json"
	"maps"
	"net/url"
	"slices"
	"strconv"
	"strings"

	"github.com/gofiber/fiber/v2"

	"github.com/penstock/penstock/relay"
	"github.com/penstock/penstock/relay/sim"
)

// perPage is how many records a page of a v3 list has unless asked otherwise.
const perPage = 25

// maxPage keeps the offset of a page within an integer.
const maxPage = 1_000_000_000

// listing reads the list parameters: page, per_page, order_by, order_direction
// and filters[field][operator|value].
func listing(c *fiber.Ctx, columns, filterable []string) (sim.Query, error) {
	asked, err := queryOf(c)
	if err != nil {
		return sim.Query{}, err
	}
	p := relay.Problems{}
	q := sim.Query{Page: pageOf(p, asked), OrderBy: asked.Get("order_by")}
	if q.OrderBy != "" && !slices.Contains(columns, q.OrderBy) {
		p.AddNamed("order_by", "The %s must be one of: "+strings.Join(columns, ", ")+".")
	}
	switch asked.Get("order_direction") {
	case "", "asc":
	case "desc":
		q.Descending = true
	default:
		p.AddNamed("order_direction", "The %s must be asc or desc.")
	}
	q.Filters = filtersOf(p, asked, filterable)
	return q, p.Err()
}

// pageOf reads page and per_page.
func pageOf(p relay.Problems, asked url.Values) relay.Page {
	return relay.Page{
		Number:  within(p, asked, "page", 1, maxPage),
		PerPage: within(p, asked, "per_page", perPage, relay.MaxPerPage),
	}
}

func within(p relay.Problems, asked url.Values, name string, otherwise, most int) int {
	text := asked.Get(name)
	if text == "" {
		return otherwise
	}
	n, err := strconv.Atoi(text)
	if err != nil || n < 1 || n > most {
		p.AddNamed(name, "The %s must be a number from 1 to "+strconv.Itoa(most)+".")
	}
	return n
}

// filtersOf reads the filters, in the order of their fields.
func filtersOf(p relay.Problems, asked url.Values, filterable []string) []sim.Filter {
	type halves struct{ operator, value string }
	named := map[string]halves{}
	for name := range asked {
		if name != "filters" && !strings.HasPrefix(name, "filters[") {
			continue
		}
		field, half, ok := bracketed(name)
		if !ok || !slices.Contains(filterable, field) {
			p.Add(dotted(name), "The field must be one of: "+strings.Join(filterable, ", ")+".")
			continue
		}
		h := named[field]
		if half == "operator" {
			h.operator = asked.Get(name)
		} else {
			h.value = asked.Get(name)
		}
		named[field] = h
	}
	var out []sim.Filter
	for _, field := range slices.Sorted(maps.Keys(named)) {
		f, part, how := sim.ParseFilter(field, named[field].operator, named[field].value)
		if how != "" {
			p.Add("filters."+field+"."+part, "The "+part+" "+how)
			continue
		}
		out = append(out, f)
	}
	return out
}

// bracketed reads filters[field][half].
func bracketed(name string) (field, half string, ok bool) {
	inner, ok := strings.CutPrefix(name, "filters[")
	field, half, both := strings.Cut(strings.TrimSuffix(inner, "]"), "][")
	return field, half, ok && both && strings.HasSuffix(inner, "]") && (half == "operator" || half == "value")
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

// paged answers with a page of a list.
func paged[T any](c *fiber.Ctx, message string, page relay.Page, records []T, total int) error {
	if records == nil {
		records = []T{}
	}
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
