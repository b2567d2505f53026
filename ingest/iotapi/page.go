package iotapi

import (
	"math"
	"strconv"

	"github.com/gofiber/fiber/v2"

	"github.com/penstock/penstock/relay"
	"github.com/penstock/penstock/relay/iot"
)

// pageOf reads page and per_page. Lists are whole unless one of them is given;
// page alone has pages of the most records there may be.
func pageOf(c *fiber.Ctx) (relay.Page, error) {
	if c.Query("page") == "" && c.Query("per_page") == "" {
		return relay.Page{Number: 1, PerPage: math.MaxInt}, nil
	}
	p := iot.Problems{}
	page := relay.Page{
		Number:  number(c, p, "page", 1, math.MaxInt32),
		PerPage: number(c, p, "per_page", relay.MaxPerPage, relay.MaxPerPage),
	}
	return page, p.Err()
}

func number(c *fiber.Ctx, p iot.Problems, name string, otherwise, most int) int {
	text := c.Query(name)
	if text == "" {
		return otherwise
	}
	n, err := strconv.Atoi(text)
	if err != nil || n < 1 || n > most {
		p.Add(name, "The "+words(name)+" must be between 1 and "+strconv.Itoa(most)+".")
	}
	return n
}

// list answers with a page of a list.
func list[A, B any](c *fiber.Ctx, page relay.Page, all []A, f func(A) B) error {
	from := min(page.Offset(), len(all))
	return data(c, fiber.StatusOK, each(all[from:from+min(page.PerPage, len(all)-from)], f))
}
