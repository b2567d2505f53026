package iotapi

import (
	"math"
	"strconv"

	"github.com/gofiber/fiber/v2"

	"github.com/penstock/penstock/relay"
)

// pageOf reads page and per_page. Without them a list is complete; page alone uses
// the maximum page size.
func pageOf(c *fiber.Ctx) (relay.Page, error) {
	if c.Query("page") == "" && c.Query("per_page") == "" {
		return relay.Page{Number: 1, PerPage: math.MaxInt}, nil
	}
	p := relay.Problems{}
	page := relay.Page{
		Number:  intParam(c, p, "page", 1, math.MaxInt32),
		PerPage: intParam(c, p, "per_page", relay.MaxPerPage, relay.MaxPerPage),
	}
	return page, p.Err()
}

// intParam reads an integer parameter; fallback is its value if it is absent.
func intParam(c *fiber.Ctx, p relay.Problems, name string, fallback, most int) int {
	text := c.Query(name)
	if text == "" {
		return fallback
	}
	n, err := strconv.Atoi(text)
	if err != nil || n < 1 || n > most {
		p.Add(name, "The "+fieldWords(name)+" must be between 1 and "+strconv.Itoa(most)+".")
	}
	return n
}

// sendPage sends a page of a list.
func sendPage[A, B any](c *fiber.Ctx, page relay.Page, all []A, f func(A) B) error {
	from := min(page.Offset(), len(all))
	return sendData(c, fiber.StatusOK, mapList(all[from:from+min(page.PerPage, len(all)-from)], f))
}
