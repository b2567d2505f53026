package restv2

import (
	"net/url"
	"strconv"
	"unicode/utf8"

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

func inputFrom(get params.Source) input { return input{params.New(get, parameterName)} }

// parameterName returns the name of a parameter in texts: as requests do.
func parameterName(name string) string { return name }

// inputOf reads a JSON object, the query, or both.
func inputOf(c *fiber.Ctx) (input, error) {
	text := string(c.Request().URI().QueryString())
	raw, err := httpd.Body(c, maxBody)
	if err != nil {
		return input{}, err
	}
	if !params.IsJSON(c) && (len(raw) > 0 || text == "") {
		return input{}, params.ErrNotJSON
	}
	body, err := object(raw)
	if err != nil {
		return input{}, err
	}
	q, err := url.ParseQuery(text)
	if err != nil {
		return input{}, relay.Invalid("query", "The query is not URL-encoded.")
	}
	return input{params.OfRequest(c, params.OfObject(body).Or(params.OfValues(q, false)), parameterName)}, nil
}

// object reads a body that is there.
func object(raw []byte) (map[string]any, error) {
	if len(raw) == 0 {
		return nil, nil
	}
	if !utf8.Valid(raw) || unpaired(raw) {
		return nil, relay.Invalid("body", "The body is not valid UTF-8.")
	}
	members, err := params.Object(raw)
	if err != nil {
		return nil, relay.Invalid("body", err.Error())
	}
	return members, nil
}

// unpaired reports whether an escape is half of a surrogate pair, which encoding/json
// would replace by another character, in a message that is charged.
func unpaired(raw []byte) bool {
	var high bool // the escape before was the first half
	for len(raw) > 0 {
		code, size := rune(-1), 1
		if raw[0] == '\\' {
			size = min(2, len(raw))
			if len(raw) >= 6 && raw[1] == 'u' {
				n, err := strconv.ParseUint(string(raw[2:6]), 16, 16)
				if err == nil {
					code, size = rune(n), 6
				}
			}
		}
		low := code >= 0xdc00 && code <= 0xdfff
		if low != high {
			return true
		}
		high = code >= 0xd800 && code <= 0xdbff
		raw = raw[size:]
	}
	return high
}

const perPage = 50

func listInput(c *fiber.Ctx) input {
	return input{params.OfList(c, parameterName)}
}

// pageOf reads the parameters of a list that has no others than page and per_page.
func pageOf(c *fiber.Ctx) (relay.Page, error) {
	i := listInput(c)
	page := i.Page(perPage)
	return page, i.Err()
}

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
