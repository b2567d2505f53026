package admin

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"testing"
	"time"

	"github.com/gofiber/fiber/v2"

	"github.com/penstock/penstock/ingest/answertest"
	"github.com/penstock/penstock/ingest/httpd"
	"github.com/penstock/penstock/relay"
	"github.com/penstock/penstock/relay/relaytest"
)

func TestHealthAndReadiness(t *testing.T) {
	o := newOperatorAPI(t)
	for line, want := range map[string]string{
		"GET /healthz": `200 {"status":"alive"}`,
		"GET /readyz":  `200 {"backends":{"readings":{"status":"ok"},"records":{"status":"ok","note":"redis"}},"status":"ready"}`,
	} {
		if got := o.call(line, ""); got != want {
			t.Errorf("%s: answer = %s, want %s", line, got, want)
		}
	}
	const answer = `503 {"backends":{"readings":{"status":"down","error":"%s"},"records":{"status":"ok","note":"redis"}},"status":"not ready"}`
	for _, tc := range []struct {
		name, token string
		err         error
		want        string // the error in the answer
	}{
		{"the admin token", "root", errors.New("no route to <10.0.0.1>"), "no route to <10.0.0.1>"},
		{"no token", "", errors.New("no route to <10.0.0.1>"), hiddenReason},
		{"a wrong token", "rot", errors.New("no route to <10.0.0.1>"), hiddenReason},
		{"no token, a public reason", "", fmt.Errorf("open /var: %w", Reason("set redis.url")), "set redis.url"},
	} {
		o.backend = tc.err
		r := answertest.Request("GET", "/readyz", "")
		if tc.token != "" {
			r.Header.Set("Authorization", "Bearer "+tc.token)
		}
		status, body, _ := answertest.Send(t, o.app, r)
		relaytest.Equal(t, tc.name, fmt.Sprintf("%d %s", status, body), fmt.Sprintf(answer, tc.want))
	}
}

func TestADisconnectedCarrierLeavesTheGatewayReady(t *testing.T) {
	app := httpd.New(httpd.Options{Logger: slog.New(slog.DiscardHandler)})
	s := New(Deps{Now: time.Now, Backends: []Backend{
		{Name: "records", Check: func(context.Context) error { return nil }},
		{Name: "carrier one", Note: "smpp", Optional: true, Check: func(context.Context) error { return errors.New("waiting: no route") }},
	}})
	s.auth = httpd.NewAuth(httpd.AuthDeps{Now: time.Now})
	app.Get("/readyz", s.ready)
	status, body, _ := answertest.Send(t, app, answertest.Request("GET", "/readyz", ""))
	const want = `{"backends":{"carrier one":{"status":"down","note":"smpp","error":"unavailable; the reason is in /readyz with the admin token"},"records":{"status":"ok"}},"status":"ready"}`
	relaytest.Equal(t, "the status", status, 200)
	relaytest.Equal(t, "the answer", body, want)
}

func TestMetricsCountEntriesAndDeliveries(t *testing.T) {
	o := newOperatorAPIWithEvents(t)
	got := o.call("GET /metrics", "")
	for _, line := range []string{
		`penstock_entries_accepted_total{kind="sms"} 3`, `penstock_entries_processed_total{kind="uplink"} 4`, `penstock_entries_quarantined_total{kind="uplink"} 1`,
		`penstock_entries_pending{kind="sms"} 1`, `penstock_processing_stalled{kind="sms"} 0`, `penstock_deliveries_in_flight 3`, `penstock_deliveries_dead_total 4`,
	} {
		if !strings.Contains(got, line+"\n") {
			t.Errorf("metrics have no line %s", line)
		}
	}
}

func TestTheAdminAPIRequiresTheAdminToken(t *testing.T) {
	o := newOperatorAPI(t)
	for _, path := range []string{"/admin/inventory", "/admin/events", "/admin/deliveries", "/admin/nowhere"} {
		status, _, _ := answertest.Send(t, o.app, answertest.Request("GET", path, ""))
		relaytest.Equal(t, path+": the status", status, 401)
	}
	if got := o.call("GET /admin/nowhere", ""); got != `404 {"message":"Not found."}` {
		t.Errorf("answer for an unknown path = %s, want 404", got)
	}
}

func TestStatusesOfKindsOfErrors(t *testing.T) {
	app := httpd.New(httpd.Options{Logger: slog.New(slog.DiscardHandler)})
	var handlerErr error
	app.Get("/", errorAnswers().Handler, func(*fiber.Ctx) error { return handlerErr })
	for kind, want := range map[relay.Kind]int{
		relay.KindUnexpected: 500, relay.KindInvalid: 422, relay.KindNotFound: 404, relay.KindUnauthenticated: 401,
		relay.KindForbidden: 403, relay.KindConflict: 409, relay.KindUnavailable: 503,
		relay.KindNoCredit: 402,
	} {
		handlerErr = relay.Errorf(kind, "x")
		status, _, _ := answertest.Send(t, app, answertest.Request("GET", "/", ""))
		relaytest.Equal(t, fmt.Sprintf("the status of %s", kind), status, want)
	}
}
