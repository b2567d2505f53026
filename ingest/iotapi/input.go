package iotapi

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"math"
	"reflect"
	"slices"
	"strings"

	"github.com/gofiber/fiber/v2"

	"github.com/penstock/penstock/decoders/decimal"
	"github.com/penstock/penstock/ingest/httpd"
	"github.com/penstock/penstock/ingest/httpd/params"
	"github.com/penstock/penstock/relay"
)

// unknownFields returns the sorted paths of the fields of a JSON value that a type does not have.
// Like encoding/json, it ignores the case of names.
func unknownFields(raw []byte, t reflect.Type, parent string) (paths []string) {
	switch t = baseType(t); t.Kind() {
	case reflect.Struct:
		var members map[string]json.RawMessage
		_ = json.Unmarshal(raw, &members) // decoding has refused values of the wrong type
		for name, value := range members {
			path := strings.TrimPrefix(parent+"."+name, ".")
			fields := reflect.VisibleFields(t)
			i := slices.IndexFunc(fields, func(f reflect.StructField) bool {
				known, _, _ := strings.Cut(f.Tag.Get("json"), ",")
				return strings.EqualFold(known, name)
			})
			if i >= 0 {
				paths = append(paths, unknownFields(value, fields[i].Type, path)...)
			} else {
				paths = append(paths, path)
			}
		}
	case reflect.Slice:
		var list []json.RawMessage
		_ = json.Unmarshal(raw, &list)
		for i, value := range list {
			paths = append(paths, unknownFields(value, t.Elem(), fmt.Sprintf("%s[%d]", parent, i))...)
		}
	}
	slices.Sort(paths)
	return paths
}

// number is a JSON number. Unlike a float64 it refuses 1e-400, which would become 0.
type number float64

// UnmarshalJSON accepts a JSON number.
func (n *number) UnmarshalJSON(b []byte) error {
	v, ok := decimal.Float(string(b))
	if !ok {
		return &json.UnmarshalTypeError{Type: reflect.TypeFor[float64]()}
	}
	*n = number(v)
	return nil
}

// integer is a whole JSON number, which may have an exponent: 3e1.
type integer int

// UnmarshalJSON accepts a whole JSON number.
func (n *integer) UnmarshalJSON(b []byte) error {
	v, ok := decimal.Int(string(b))
	if !ok {
		return &json.UnmarshalTypeError{Type: reflect.TypeFor[int]()}
	}
	*n = integer(v)
	return nil
}

// decimalText is a number given as a JSON string, "-2.0943", or a JSON number.
type decimalText string

// UnmarshalJSON accepts a JSON string or number.
func (t *decimalText) UnmarshalJSON(b []byte) error {
	if b[0] == '"' {
		return json.Unmarshal(b, (*string)(t))
	}
	var n json.Number
	if json.Unmarshal(b, &n) != nil {
		return &json.UnmarshalTypeError{Type: reflect.TypeFor[float64]()}
	}
	*t = decimalText(n)
	return nil
}

// document is a JSON value, as it is or in a JSON string.
type document string

// UnmarshalJSON accepts any JSON.
func (d *document) UnmarshalJSON(b []byte) error {
	if b[0] == '"' {
		return json.Unmarshal(b, (*string)(d))
	}
	*d = document(bytes.Clone(b))
	return nil
}

func listInput(c *fiber.Ctx) input { return input{params.OfList(c, relay.FieldWords)} }

// pageOf reads the parameters of a list with only page and per_page.
func pageOf(c *fiber.Ctx) (relay.Page, error) {
	i := listInput(c)
	page := i.page()
	return page, i.Err()
}

type input struct{ *params.Input }

// page reads page and per_page. Without them the page has the whole list; without per_page it has
// the maximum size.
func (i input) page() relay.Page {
	if i.Value("page") == nil && i.Value("per_page") == nil {
		return relay.Page{Number: 1, PerPage: math.MaxInt}
	}
	return relay.Page{Number: i.int("page", 1, math.MaxInt32), PerPage: i.int("per_page", relay.MaxPerPage, relay.MaxPerPage)}
}

// int returns an integer from 1 to limit; fallback if it is missing.
func (i input) int(name string, fallback, limit int) int {
	return i.Int(name, fallback, limit, "between 1 and")
}

// listHandler returns a handler that answers with a page of rendered records.
func listHandler[A, B any](list func(*fiber.Ctx) ([]A, error), render func(A) B) fiber.Handler {
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

func sendPage[A, B any](c *fiber.Ctx, page relay.Page, items []A, render func(A) B) error {
	items = httpd.PageOf(page, items)
	if len(items) < minStreamed {
		return sendData(c, fiber.StatusOK, httpd.Each(items, render))
	}
	return sendRecords(c, items, func(row []byte, v *A) ([]byte, error) {
		text, err := relay.EncodeJSON(render(*v))
		return append(row, text...), err
	})
}

// recordHandler returns a handler that answers with a rendered record in data.
func recordHandler[A, B any](status int, handle func(*fiber.Ctx) (A, error), render func(A) B) fiber.Handler {
	return func(c *fiber.Ctx) error {
		v, err := handle(c)
		if err != nil {
			return err
		}
		return sendData(c, status, render(v))
	}
}

// identity renders a record as it is.
func identity[T any](v T) T { return v }

func withAccount[A any](read func(context.Context, relay.AccountID) (A, error)) func(*fiber.Ctx) (A, error) {
	return func(c *fiber.Ctx) (A, error) { return read(c.UserContext(), httpd.AccountOf(c)) }
}

func withRecordID[A any](name string, read func(context.Context, relay.AccountID, string) (A, error)) func(*fiber.Ctx) (A, error) {
	return func(c *fiber.Ctx) (A, error) {
		return read(c.UserContext(), httpd.AccountOf(c), params.Path(c, name))
	}
}

// deleteHandler returns a handler that deletes the record whose id is the path parameter name.
func deleteHandler(name string, remove func(context.Context, relay.AccountID, string) error) fiber.Handler {
	return func(c *fiber.Ctx) error {
		if err := remove(c.UserContext(), httpd.AccountOf(c), params.Path(c, name)); err != nil {
			return err
		}
		return c.SendStatus(fiber.StatusNoContent)
	}
}
