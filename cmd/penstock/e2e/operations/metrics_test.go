package operations

import (
	"strings"
	"testing"

	"github.com/prometheus/client_golang/prometheus/testutil/promlint"

	"github.com/penstock/penstock/cmd/penstock/e2e"
	"github.com/penstock/penstock/relay/relaytest"
)

// TestMetricsAreWellNamedAndCountEveryStep sends a frame and a message, and checks the measurements of
// their processing. It uses the linter of `promtool check metrics`.
func TestMetricsAreWellNamedAndCountEveryStep(t *testing.T) {
	t.Parallel()
	sink := e2e.NewSink(t, nil)
	g := e2e.Start(t, e2e.Embedded(), e2e.Fixture(t, "relays.yaml", "SINK", sink.URL, "MAILBOX", "box@example.com"))
	acme := g.WithToken("acme-all-0123456")
	e2e.PostWebhook(t, acme, "/webhooks/lpwan", `{"deviceId": "metered", "temperature": 1}`)
	acme.PostInboundText("metered-1", "447800015555", "measured")
	sink.Await(t, "/longer", 1)
	g.AwaitDelivery("g-longer", "delivered")
	g.AwaitProcessed()
	text := g.WithToken("").Get("/metrics").Body
	problems, err := promlint.New(strings.NewReader(text)).Lint()
	relaytest.NoError(t, err)
	for _, p := range problems {
		if strings.HasPrefix(p.Metric, "penstock_") {
			t.Errorf("%s: %s", p.Metric, p.Text)
		}
	}
	for _, name := range []string{
		`penstock_http_request_duration_seconds_count{code="2xx",method="POST",route="/webhooks/lpwan"}`,
		`penstock_journal_fsync_duration_seconds_count{kind="uplink"}`,
		`penstock_entry_duration_seconds_count{kind="uplink"}`,
		`penstock_entry_duration_seconds_count{kind="sms"}`,
		`penstock_delivery_duration_seconds_count{kind="relay"}`,
		`penstock_backend_call_duration_seconds_count{backend="records",operation="write"}`,
		`penstock_backend_call_duration_seconds_count{backend="records",operation="read"}`,
		`penstock_backend_call_duration_seconds_count{backend="readings",operation="write"}`,
		`penstock_backend_call_duration_seconds_count{backend="queue",operation="pipeline"}`,
		`penstock_backend_up{backend="records"}`, `penstock_backend_up{backend="journal uplink"}`,
	} {
		g.AwaitMetric(name, 1)
	}
	if !strings.Contains(text, `penstock_build_info{goversion="go`) {
		t.Error("the metric penstock_build_info is missing")
	}
}
