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
	in := listInput(c)
	page := in.page()
	return page, in.Err()
}

// input is the parameters of a list.
type input struct{ *params.Input }

// page reads page and per_page. Without them a list is complete; page alone uses the
// maximum page size.
func (in input) page() relay.Page {
	if in.Value("page") == nil && in.Value("per_page") == nil {
		return relay.Page{Number: 1, PerPage: math.MaxInt}
	}
	return relay.Page{Number: in.int("page", 1, math.MaxInt32), PerPage: in.int("per_page", relay.MaxPerPage, relay.MaxPerPage)}
}

// int returns an integer from 1 to most; fallback is its value if it is absent.
func (in input) int(name string, fallback, most int) int {
	return in.Int(name, fallback, most, "between 1 and")
}

// pages returns a handler that answers with a page of a list, as its records are shown.
func pages[A, B any](list func(*fiber.Ctx) ([]A, error), shown func(A) B) fiber.Handler {
	return func(c *fiber.Ctx) error {
		page, err := pageOf(c)
		if err != nil {
			return err
		}
		all, err := list(c)
		if err != nil {
			return err
		}
		return sendPage(c, page, all, shown)
	}
}

// sendPage answers with a page of a list, as its records are shown.
func sendPage[A, B any](c *fiber.Ctx, page relay.Page, all []A, shown func(A) B) error {
	all = httpd.PageOf(page, all)
	if len(all) < streamedFrom {
		return sendData(c, fiber.StatusOK, httpd.Each(all, shown))
	}
	return stream(c, all, func(row []byte, v *A) ([]byte, error) {
		text, err := relay.EncodeJSON(shown(*v))
		return append(row, text...), err
	})
}

// data returns a handler that answers with a record, as it is shown, in data.
func data[A, B any](status int, handle func(*fiber.Ctx) (A, error), shown func(A) B) fiber.Handler {
	return func(c *fiber.Ctx) error {
		v, err := handle(c)
		if err != nil {
			return err
		}
		return sendData(c, status, shown(v))
	}
}

// same is for what is shown as it is.
func same[T any](v T) T { return v }
