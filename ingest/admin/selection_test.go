package admin

import (
	"testing"

	"github.com/gofiber/fiber/v2"
	"github.com/valyala/fasthttp"

	"github.com/penstock/penstock/relay"
)

// FuzzSelection holds that whatever is asked for is either refused by field or
// within its bounds, and that a replay never selects everything by accident.
func FuzzSelection(f *testing.F) {
	f.Add("state=dead&limit=5", `{"ids":["a"],"account":7}`)
	f.Add("from=2026-01-01T00:00:00Z", `{"to":"2026-01-01 00:00:00","dry_run":"x"}`)
	f.Add("limit=-1&account=x", `{"ids":{"a":1},"limit":{},"cursor":[]}`)
	f.Add("", `null`)
	app := fiber.New()
	f.Fuzz(func(t *testing.T, query, body string) {
		c := app.AcquireCtx(&fasthttp.RequestCtx{})
		defer app.ReleaseCtx(c)
		c.Request().URI().SetQueryString(query)
		c.Request().SetBodyString(body)
		s, err := selectionOf(c)
		if err != nil {
			return
		}
		d, limit := s.deliveries(), s.limit()
		s.cursor()
		s.flag("dry_run")
		selects := len(d.IDs) > 0 || d.State != "" || d.Account != 0 || d.Kind != "" || d.Relay != "" || d.Target != "" ||
			!d.From.IsZero() || !d.To.IsZero() || d.Query != ""
		s.require()
		err = s.Err()
		if err != nil && (relay.KindOf(err) != relay.KindInvalid || len(relay.FieldsOf(err)) == 0) {
			t.Fatal(err)
		}
		if err == nil && (limit < 1 || limit > maxLimit || !selects && s.text("account") == "") {
			t.Fatalf("limit %d, %+v", limit, d)
		}
	})
}
