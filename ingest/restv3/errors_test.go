package restv3

import (
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"testing"

	"github.com/gofiber/fiber/v2"

	"github.com/penstock/penstock/ingest/answertest"
	"github.com/penstock/penstock/ingest/httpd"
	"github.com/penstock/penstock/ingest/httpd/params"
	"github.com/penstock/penstock/relay"
	"github.com/penstock/penstock/relay/relaytest"
	"github.com/penstock/penstock/relay/sim"
)

func TestErrorAnswers(t *testing.T) {
	wrapped := fmt.Errorf("SIM 8944: %w", relay.Errorf(relay.KindNotFound, "SIM 8944: redis: nil"))
	for _, tc := range []struct {
		name, path string
		err        error
		status     int
		body       string
	}{
		{"parameters", "/", relay.Invalid("email", "No."), 422, `{"success":false,"message":"Validation error.","errors":{"email":["No."]}}`},
		{"parameters of call records and usage", "/bare", relay.Invalid("start_time", "No."), 422, `{"message":"The given data was invalid.","errors":{"start_time":["No."]}}`},
		{"a refusal", "/", sim.PoolNotFound(), 422, `{"success":false,"message":"Invalid pool."}`},
		{"a wrapped refusal", "/bare", fmt.Errorf("x: %w", sim.NotFound()), 404, `{"success":false,"message":"SIM not found."}`},
		{"invalid without a message for the client", "/", relay.Errorf(relay.KindInvalid, "inside"), 422, `{"success":false,"message":"The request is invalid."}`},
		{"not found without a message for the client", "/", wrapped, 404, `{"success":false,"message":"Not found."}`},
		{"unauthenticated", "/", relay.Errorf(relay.KindUnauthenticated, "inside"), 401, `{"success":false,"message":"Unauthenticated."}`},
		{"forbidden", "/", relay.Errorf(relay.KindForbidden, "inside"), 403, `{"success":false,"message":"This action is unauthorised."}`},
		{"conflict", "/", relay.Errorf(relay.KindConflict, "inside"), 422, `{"success":false,"message":"The record was changed by another request."}`},
		{"unavailable", "/bare", relay.Errorf(relay.KindUnavailable, "inside"), 424, `{"success":false,"message":"Service temporarily unavailable. Please try again later."}`},
		{"an error of fiber", "/", fiber.NewError(413, "Too much."), 413, `{"success":false,"message":"Too much."}`},
		{"unexpected", "/", errors.New("inside"), 500, `{"message":"Internal error. Request 1."}`},
	} {
		t.Run(tc.name, func(t *testing.T) {
			app := httpd.New(httpd.Options{Logger: slog.New(slog.DiscardHandler)})
			fail := func(*fiber.Ctx) error { return tc.err }
			r := app.Group("/", errorHandler())
			r.Get("/", fail)
			r.Get("/bare", omitSuccess, fail)
			status, got, _ := answertest.Send(t, app, answertest.Request("GET", tc.path, ""))
			relaytest.Equal(t, "the status", status, tc.status)
			relaytest.Equal(t, "the answer", got, tc.body)
		})
	}
}

func TestBooleansOfBodyAndQuery(t *testing.T) {
	input := inputFrom(params.OfObject(map[string]any{"yes": true, "no": false, "text": "1", "query": params.QueryText("1"), "null": nil, "number": json.Number("1")}))
	for name, want := range map[string]string{"yes": "true", "no": "false", "text": "-", "query": "true", "null": "-", "number": "-", "missing": "-"} {
		got := "-"
		if v := input.Bool(name); v != nil {
			got = fmt.Sprint(*v)
		}
		if got != want {
			t.Errorf("%s = %s, want %s", name, got, want)
		}
	}
	relaytest.Equal(t, "the number of fields with problems", len(input.Problems), 2)
	relaytest.Equal(t, "the number of problems of the text", len(input.Problems["text"]), 1)
	relaytest.Equal(t, "the number of problems of the number", len(input.Problems["number"]), 1)
}
