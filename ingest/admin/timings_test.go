package admin_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/prometheus/client_golang/prometheus/testutil"

	"github.com/penstock/penstock/ingest/admin"
	"github.com/penstock/penstock/relay/relaytest"
)

func TestRequestsAreMeasuredByRouteAndClass(t *testing.T) {
	timings := admin.NewTimings()
	registry := prometheus.NewRegistry()
	registry.MustRegister(timings.Collectors()...)
	for range 2 {
		timings.Request("GET", "/iot/devices/:device_id", 200, 3*time.Millisecond)
		timings.Request("GET", "/iot/devices/:device_id", 204, 3*time.Millisecond)
		timings.Request("GET", "/iot/devices/:device_id", 503, time.Minute)
	}
	families, err := registry.Gather()
	relaytest.NoError(t, err)
	got := map[string]uint64{}
	for _, f := range families {
		for _, m := range f.GetMetric() {
			var labels []string
			for _, l := range m.GetLabel() {
				labels = append(labels, l.GetName()+"="+l.GetValue())
			}
			got[f.GetName()+"{"+strings.Join(labels, ",")+"}"] = m.GetHistogram().GetSampleCount()
		}
	}
	for name, want := range map[string]uint64{
		"penstock_http_request_duration_seconds{code=2xx,method=GET,route=/iot/devices/:device_id}": 4,
		"penstock_http_request_duration_seconds{code=5xx,method=GET,route=/iot/devices/:device_id}": 2,
	} {
		if got[name] != want {
			t.Errorf("%s = %d, want %d; all metrics: %v", name, got[name], want, got)
		}
	}
}

func TestBackEndsAreCheckedAtMostEveryFiveSeconds(t *testing.T) {
	now, checks, checkErr := time.Unix(1_000, 0), 0, error(nil)
	c := admin.NewUpCollector([]admin.Backend{
		{Name: "records", Check: func(context.Context) error { checks++; return checkErr }},
		{Name: "queue", Check: func(context.Context) error { return nil }},
	}, func() time.Time { return now })
	wantUp := func(records string) {
		t.Helper()
		text := `# HELP penstock_backend_up 1 if a back end works, 0 if it is down, as in /readyz.
# TYPE penstock_backend_up gauge
penstock_backend_up{backend="queue"} 1
penstock_backend_up{backend="records"} ` + records + "\n"
		if err := testutil.CollectAndCompare(c, strings.NewReader(text)); err != nil {
			t.Error(err)
		}
	}
	wantUp("1")
	checkErr = errors.New("refused")
	now = now.Add(4 * time.Second)
	wantUp("1")
	if checks != 1 {
		t.Errorf("checks = %d, want 1", checks)
	}
	now = now.Add(time.Second)
	wantUp("0")
}

// BenchmarkRequest measures the cost of the metrics of a request.
func BenchmarkRequest(b *testing.B) {
	timings := admin.NewTimings()
	completed := timings.Completed("uplink")
	b.ReportAllocs()
	for b.Loop() {
		timings.Request("POST", "/webhooks/lorawan", 200, time.Millisecond)
		completed(time.Millisecond)
	}
}

func TestHostsAboveTheLimitShareALabel(t *testing.T) {
	timings := admin.NewTimings()
	for i := range 202 {
		timings.Attempt(fmt.Sprint("host-", i), "delivered")
	}
	timings.Attempt("host-0", "delivered")
	registry := prometheus.NewRegistry()
	registry.MustRegister(timings.Collectors()...)
	families, err := registry.Gather()
	relaytest.NoError(t, err)
	got := map[string]float64{}
	for _, f := range families {
		for _, m := range f.GetMetric() {
			got[m.GetLabel()[0].GetValue()] = m.GetCounter().GetValue()
		}
	}
	relaytest.Equal(t, "attempts at host-0, host-199, host-200 and others", []float64{got["host-0"], got["host-199"], got["host-200"], got["other"]}, []float64{2, 1, 0, 2})
}
