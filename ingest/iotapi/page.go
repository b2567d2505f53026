package iotapi

import (
	"math"

	"github.com/gofiber/fiber/v2"

	"github.com/penstock/penstock/ingest/httpd"
	"github.com/penstock/penstock/ingest/httpd/params"
	"github.com/penstock/penstock/relay"
)

// listInput returns the parameters of a list.
func listInput(c *fiber.Ctx) input { return input{params.OfList(c, relay.FieldWords)} }

// pageOf reads the parameters of a list that has no others than page and per_page.
func pageOf(c *fiber.Ctx) (relay.Page, error) {
	i := listInput(c)
	page := i.page()
	return page, i.Err()
}

// input is the parameters of a list.
type input struct{ *params.Input }

// page reads page and per_page. Without them a list is complete; page alone uses the
// maximum page size.
func (i input) page() relay.Page {
	if i.Value("page") == nil && i.Value("per_page") == nil {
		return relay.Page{Number: 1, PerPage: math.MaxInt}
	}
	return relay.Page{Number: i.int("page", 1, math.MaxInt32), PerPage: i.int("per_page", relay.MaxPerPage, relay.MaxPerPage)}
}

// int returns an integer from 1 to most; fallback is its value if it is absent.
func (i input) int(name string, fallback, limit int) int {
	return i.Int(name, fallback, limit, "between 1 and")
}

// pages returns a handler that answers with a page of a list, as its records are shown.
func pages[A, B any](list func(*fiber.Ctx) ([]A, error), render func(A) B) fiber.Handler {
	return func(c *fiber.Ctx) error {
		page, err := pageOf(c)
		if err != nil {
			return err
		}
		items, err := list(c)
		if err != nil {
			return err
		}
		return sendPage(c, page, items, render)
	}
}

// sendPage answers with a page of a list, as its records are shown.
func sendPage[A, B any](c *fiber.Ctx, page relay.Page, items []A, render func(A) B) error {
	items = httpd.PageOf(page, items)
	if len(items) < streamedFrom {
		return sendData(c, fiber.StatusOK, httpd.Each(items, render))
	}
	return stream(c, items, func(row []byte, v *A) ([]byte, error) {
		text, err := relay.EncodeJSON(render(*v))
		return append(row, text...), err
	})
}

// data returns a handler that answers with a record, as it is shown, in data.
func data[A, B any](status int, handle func(*fiber.Ctx) (A, error), render func(A) B) fiber.Handler {
	return func(c *fiber.Ctx) error {
		v, err := handle(c)
		if err != nil {
			return err
		}
		return sendData(c, status, render(v))
	}
}

// same is for what is shown as it is.
func same[T any](v T) T { return v }
