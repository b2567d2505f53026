package restv2

import (
	"net/url"
	"strconv"

	"github.com/gofiber/fiber/v2"

	"github.com/penstock/penstock/ingest/httpd"
	"github.com/penstock/penstock/ingest/httpd/params"
	"github.com/penstock/penstock/relay"
)

// perPage is how many records a page of a v2 list has unless asked otherwise.
const perPage = 50

// maxPage keeps the offset of a page within an integer.
const maxPage = 1_000_000_000

// listInput returns the parameters of a list.
func listInput(c *fiber.Ctx) input {
	return input{params.OfList(c, parameterName)}
}

// page reads page and per_page.
func (i input) page() relay.Page {
	return relay.Page{
		Number:  i.Int("page", 1, maxPage, "a number from 1 to"),
		PerPage: i.Int("per_page", perPage, relay.MaxPerPage, "a number from 1 to"),
	}
}

// pageOf reads the parameters of a list that has no others than page and per_page.
func pageOf(c *fiber.Ctx) (relay.Page, error) {
	i := listInput(c)
	page := i.page()
	return page, i.Err()
}

// pagination is meta.pagination of the specification.
type pagination struct {
	httpd.Pagination
	Links []link `json:"links"`
}

// link leads to the page before or after; the specification has an array and
// does not show what is in it.
type link struct {
	Rel string `json:"rel"`
	URL string `json:"url"`
}

// list answers with a page of a whole list.
func list[T any](c *fiber.Ctx, page relay.Page, records []T) error {
	return paged(c, page, httpd.PageOf(page, records), len(records))
}

// paged answers with a page that was read alone.
func paged[T any](c *fiber.Ctx, page relay.Page, records []T, total int) error {
	if records == nil {
		records = []T{}
	}
	block := pagination{httpd.PaginationOf(page, len(records), total), []link{}}
	if page.Number > 1 {
		block.Links = append(block.Links, link{"previous", pageURL(c, min(page.Number-1, block.TotalPages))})
	}
	if page.Number < block.TotalPages {
		block.Links = append(block.Links, link{"next", pageURL(c, page.Number+1)})
	}
	return c.JSON(fiber.Map{"data": records, "meta": fiber.Map{"pagination": block}})
}

// pageURL is the request's path and query with another page.
func pageURL(c *fiber.Ctx, number int) string {
	q, _ := url.ParseQuery(string(c.Request().URI().QueryString())) // what cannot be read is left out
	q.Set("page", strconv.Itoa(number))
	return string(c.Request().URI().Path()) + "?" + q.Encode()
}
