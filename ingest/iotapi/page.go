package iotapi

import (
	"math"

	"github.com/gofiber/fiber/v2"

	"github.com/penstock/penstock/ingest/httpd"
	"github.com/penstock/penstock/ingest/httpd/params"
	"github.com/penstock/penstock/relay"
)

// pageOf reads page and per_page. Without them a list is complete; page alone uses
// the maximum page size.
func pageOf(c *fiber.Ctx) (relay.Page, error) {
	if c.Query("page") == "" && c.Query("per_page") == "" {
		return relay.Page{Number: 1, PerPage: math.MaxInt}, nil
	}
	in := queryOf(c)
	page := relay.Page{Number: in.int("page", 1, math.MaxInt32), PerPage: in.int("per_page", relay.MaxPerPage, relay.MaxPerPage)}
	return page, in.Err()
}

// input is the parameters of a query.
type input struct{ *params.Input }

func queryOf(c *fiber.Ctx) input { return input{params.New(params.OfQuery(c), relay.FieldWords)} }

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
		return sendData(c, fiber.StatusOK, httpd.Each(httpd.PageOf(page, all), shown))
	}
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
