package iotapi

import (
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"testing"

	"github.com/gofiber/fiber/v2"

	"github.com/penstock/penstock/ingest/httpd"
	"github.com/penstock/penstock/relay"
	"github.com/penstock/penstock/relay/relaytest"
)

// A streamed list has the same form as a short one.
func TestLongListsAreStreamed(t *testing.T) {
	app := httpd.New(httpd.Options{})
	app.Get("/:count", func(c *fiber.Ctx) error {
		n, _ := c.ParamsInt("count")
		return sendPage(c, relay.Page{Number: 1, PerPage: n}, make([]int, n), func(n int) map[string]int { return map[string]int{"n": n} })
	})
	app.Get("/records/:count", func(c *fiber.Ctx) error {
		n, _ := c.ParamsInt("count")
		return sendRecords(c, make([]int, n), func(b []byte, _ *int) ([]byte, error) { return append(b, `{"n":0}`...), nil })
	})
	for _, tc := range []struct {
		path     string
		count    int
		streamed bool
	}{{"/1999", 1999, false}, {"/2000", 2000, true}, {"/records/1999", 1999, false}, {"/records/2000", 2000, true}} {
		resp := relaytest.Must(app.Test(httptest.NewRequest(http.MethodGet, tc.path, nil), -1))(t)
		body := relaytest.Must(io.ReadAll(resp.Body))(t)
		_ = resp.Body.Close()
		var answer struct{ Data []map[string]int }
		relaytest.NoError(t, json.Unmarshal(body, &answer))
		relaytest.Equal(t, tc.path+": the number of records", len(answer.Data), tc.count)
		relaytest.Equal(t, tc.path+": the type", resp.Header.Get("Content-Type"), "application/json")
		relaytest.Equal(t, tc.path+": the length is unknown", resp.ContentLength < 0, tc.streamed)
	}
}
