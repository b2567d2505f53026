package httpd_test

import (
	"errors"
	"fmt"
	"log/slog"
	"testing"

	"github.com/gofiber/fiber/v2"

	"github.com/penstock/penstock/ingest/answertest"
	"github.com/penstock/penstock/ingest/httpd"
	"github.com/penstock/penstock/relay"
	"github.com/penstock/penstock/relay/relaytest"
)

func TestAnswersToKindsOfErrors(t *testing.T) {
	answers := httpd.ErrorsOf(httpd.Errors{
		relay.KindConflict: httpd.Verbatim(409),
		relay.KindNoCredit: httpd.Fixed(402, "Insufficient credit."),
		relay.KindNotFound: httpd.Empty(404),
	})
	for name, tc := range map[string]struct {
		err    error
		status int
		body   string
	}{
		"no error":                 {nil, 200, ""},
		"invalid parameters":       {relay.Invalid("to", "No."), 422, `{"errors":{"to":["No."]},"message":"The given data was invalid."}`},
		"not found":                {relay.Errorf(relay.KindNotFound, "inside"), 404, ""},
		"wrapped":                  {fmt.Errorf("SIM: %w", relay.Errorf(relay.KindForbidden, "inside")), 403, `{"message":"This action is unauthorised."}`},
		"unauthenticated":          {relay.Errorf(relay.KindUnauthenticated, "inside"), 401, `{"message":"Unauthenticated."}`},
		"the message of the error": {relay.Errorf(relay.KindConflict, "taken by acme"), 409, `{"message":"taken by acme"}`},
		"a fixed message":          {relay.Errorf(relay.KindNoCredit, "inside"), 402, `{"message":"Insufficient credit."}`},
		"an error of Fiber":        {fiber.NewError(413, "Too much."), 413, `{"message":"Too much."}`},
		"unavailable":              {relay.Errorf(relay.KindUnavailable, "inside"), 503, `{"message":"Service temporarily unavailable. Please try again later."}`},
		"unexpected":               {errors.New("inside"), 500, `{"message":"Internal error. Request 1."}`},
	} {
		t.Run(name, func(t *testing.T) {
			app := httpd.New(httpd.Options{Logger: slog.New(slog.DiscardHandler)})
			app.Get("/", answers.Handler, func(*fiber.Ctx) error { return tc.err })
			status, got, _ := answertest.Send(t, app, answertest.Request("GET", "/", ""))
			relaytest.Equal(t, "the status", status, tc.status)
			relaytest.Equal(t, "the answer", got, tc.body)
		})
	}
}
