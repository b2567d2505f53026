package admin

import (
	"context"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/gofiber/fiber/v2"

	"github.com/penstock/penstock/ingest/httpd"
	"github.com/penstock/penstock/relay"
	"github.com/penstock/penstock/relay/relaytest"
)

func TestHealth(t *testing.T) {
	o := newOffice(t)
	for line, want := range map[string]string{
		"GET /healthz": `200 {"status":"alive"}`,
		"GET /readyz":  `200 {"backends":{"readings":{"status":"ok"},"records":{"status":"ok","note":"redis"}},"status":"ready"}`,
	} {
		if got := o.ask(line, ""); got != want {
			t.Errorf("%s: %s, want %s", line, got, want)
		}
	}
	const want = `503 {"backends":{"readings":{"status":"down","error":"%s"},"records":{"status":"ok","note":"redis"}},"status":"not ready"}`
	for _, tc := range []struct {
		name, token string
		err         error
		said        string
	}{
		{"the administrator", "root", errors.New("no route to <10.0.0.1>"), "no route to <10.0.0.1>"},
		{"anybody", "", errors.New("no route to <10.0.0.1>"), hiddenReason},
		{"a wrong token", "rot", errors.New("no route to <10.0.0.1>"), hiddenReason},
		{"anybody, of a reason", "", fmt.Errorf("open /var: %w", Reason("set redis.url")), "set redis.url"},
	} {
		o.backend = tc.err
		r := httptest.NewRequest("GET", "/readyz", nil)
		if tc.token != "" {
			r.Header.Set("Authorization", "Bearer "+tc.token)
		}
		resp, err := o.app.Test(r)
		relaytest.NoError(t, err)
		body, err := io.ReadAll(resp.Body)
		relaytest.NoError(t, err)
		if got := fmt.Sprintf("%d %s", resp.StatusCode, body); got != fmt.Sprintf(want, tc.said) {
			t.Errorf("%s: %s, want %s", tc.name, got, tc.said)
		}
	}
}

func TestADisconnectedCarrierLeavesTheGatewayReady(t *testing.T) {
	app := httpd.New(httpd.Options{Logger: slog.New(slog.DiscardHandler)})
	s := New(Deps{Backends: []Backend{
		{Name: "records", Check: func(context.Context) error { return nil }},
		{Name: "carrier one", Note: "smpp", Optional: true, Check: func(context.Context) error { return errors.New("waiting: no route") }},
	}})
	app.Get("/readyz", s.ready)
	resp, err := app.Test(httptest.NewRequest("GET", "/readyz", nil))
	relaytest.NoError(t, err)
	body, err := io.ReadAll(resp.Body)
	relaytest.NoError(t, err)
	const want = `{"backends":{"carrier one":{"status":"down","note":"smpp","error":"unavailable; the reason is in /readyz with the admin token"},"records":{"status":"ok"}},"status":"ready"}`
	relaytest.Equal(t, "the status", resp.StatusCode, 200)
	relaytest.Equal(t, "the answer", string(body), want)
}

func TestMetricsCountWhatArrives(t *testing.T) {
	o := arrive(t)
	got := o.ask("GET /metrics", "")
	for _, line := range []string{
		`penstock_accepted_total{kind="sms"} 3`, `penstock_processed_total{kind="uplink"} 4`, `penstock_quarantined_total{kind="uplink"} 1`,
		`penstock_lag{kind="sms"} 1`, `penstock_waiting{kind="sms"} 0`, `penstock_deliveries_running 3`, `penstock_deliveries_dead_total 4`,
	} {
		if !strings.Contains(got, line+"\n") {
			t.Errorf("no %s", line)
		}
	}
}

func TestTheAdministratorAlone(t *testing.T) {
	o := newOffice(t)
	for _, path := range []string{"/admin/inventory", "/admin/events", "/admin/deliveries", "/admin/nowhere"} {
		resp, err := o.app.Test(httptest.NewRequest("GET", path, nil))
		relaytest.NoError(t, err)
		if resp.StatusCode != 401 {
			t.Errorf("%s: %d", path, resp.StatusCode)
		}
	}
	if got := o.ask("GET /admin/nowhere", ""); got != `404 {"message":"Not found."}` {
		t.Error(got)
	}
}

// Every kind of error has its answer.
func TestProblemsAreAnsweredByKind(t *testing.T) {
	app := httpd.New(httpd.Options{Logger: slog.New(slog.DiscardHandler)})
	var give error
	app.Get("/", answers().Handler, func(*fiber.Ctx) error { return give })
	for kind, want := range map[relay.Kind]int{
		relay.KindUnexpected: 500, relay.KindInvalid: 422, relay.KindNotFound: 404, relay.KindUnauthenticated: 401,
		relay.KindForbidden: 403, relay.KindConflict: 409, relay.KindUnavailable: 503,
		relay.KindNoCredit: 402,
	} {
		give = relay.Errorf(kind, "x")
		resp, err := app.Test(httptest.NewRequest("GET", "/", nil))
		relaytest.NoError(t, err)
		if resp.StatusCode != want {
			t.Errorf("%s: %d, want %d", kind, resp.StatusCode, want)
		}
	}
}
