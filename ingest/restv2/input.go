package restv2

import (
	"net/url"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/gofiber/fiber/v2"

	"github.com/penstock/penstock/decoders/iso8601"
	"github.com/penstock/penstock/ingest/httpd"
	"github.com/penstock/penstock/ingest/httpd/params"
	"github.com/penstock/penstock/relay"
)

// maxBody is the longest body of an operation, in bytes.
const maxBody = 1 << 20

// input has the parameters of an operation: the members of the body, and the parameters of the
// query that the body does not have.
type input struct{ *params.Input }

// parameterName returns the name of a parameter in texts, which is its name in requests.
func parameterName(name string) string { return name }

// inputOf reads the parameters of a request from a JSON object, the query, or both.
func inputOf(c *fiber.Ctx) (input, error) {
	rawQuery := string(c.Request().URI().QueryString())
	raw, err := httpd.Body(c, maxBody)
	if err != nil {
		return input{}, err
	}
	if !params.IsJSON(c) && (len(raw) > 0 || rawQuery == "") {
		return input{}, params.ErrNotJSON
	}
	body, err := parseObject(raw)
	if err != nil {
		return input{}, err
	}
	q, err := url.ParseQuery(rawQuery)
	if err != nil {
		return input{}, relay.Invalid("query", "The query is not URL-encoded.")
	}
	return input{params.OfRequest(c, params.OfObject(body).Or(params.OfValues(q, false)), parameterName)}, nil
}

// date reads a required time, in UTC. A day without a time is its midnight plus dayOffset.
func (i input) date(name string, dayOffset time.Duration) time.Time {
	t := i.Time(name, "a date like 2026-01-31 12:00:00")
	if t.IsZero() {
		return t
	}
	if _, day := iso8601.ParseDay(strings.TrimSpace(i.Text(name))); day {
		t = t.Add(dayOffset)
	}
	return t
}

// flag reads an optional boolean, which is false if it is missing.
func (i input) flag(name string) bool {
	v := i.Bool(name)
	return v != nil && *v
}

// parseObject parses a body. An empty body has no parameters.
func parseObject(raw []byte) (map[string]any, error) {
	if len(raw) == 0 {
		return nil, nil
	}
	if !utf8.Valid(raw) || hasUnpairedSurrogate(raw) {
		return nil, relay.Invalid("body", "The body is not valid UTF-8.")
	}
	members, err := params.Object(raw)
	if err != nil {
		return nil, relay.Invalid("body", err.Error())
	}
	return members, nil
}

// hasUnpairedSurrogate reports whether an escape is half of a surrogate pair. encoding/json would
// replace it with another character, and the sender would pay for a wrong message.
func hasUnpairedSurrogate(raw []byte) bool {
	var high bool // the previous escape was the first half of a pair
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

// pageOf reads the parameters of a list with only page and per_page.
func pageOf(c *fiber.Ctx) (relay.Page, error) {
	i := listInput(c)
	page := i.Page(perPage)
	return page, i.Err()
}

type pagination struct {
	httpd.Pagination
	Links []link `json:"links"`
}

// link is the URL of the previous or the next page. The specification has an array of links and
// does not show their fields.
type link struct {
	Rel string `json:"rel"`
	URL string `json:"url"`
}

// sendList answers with a page of a complete list.
func sendList[T any](c *fiber.Ctx, page relay.Page, records []T) error {
	return sendPage(c, page, httpd.PageOf(page, records), len(records))
}

// sendPage answers with a page of a list with total records.
func sendPage[T any](c *fiber.Ctx, page relay.Page, records []T, total int) error {
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

// pageURL returns the path and query of the request with another page.
func pageURL(c *fiber.Ctx, number int) string {
	q, _ := url.ParseQuery(string(c.Request().URI().QueryString())) // invalid parameters are left out
	q.Set("page", strconv.Itoa(number))
	return string(c.Request().URI().Path()) + "?" + q.Encode()
}
