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
			t.Errorf("%s: %d, want %d; all: %v", name, got[name], want, got)
		}
	}
}

func TestBackendsAreAskedAtMostOnceInFiveSeconds(t *testing.T) {
	now, asked, broken := time.Unix(1_000, 0), 0, error(nil)
	c := admin.NewUpCollector([]admin.Backend{
		{Name: "records", Check: func(context.Context) error { asked++; return broken }},
		{Name: "queue", Check: func(context.Context) error { return nil }},
	}, func() time.Time { return now })
	want := func(records string) {
		t.Helper()
		text := `# HELP penstock_backend_up 1 if a back end works, 0 if it is down, as in /readyz.
# TYPE penstock_backend_up gauge
penstock_backend_up{backend="queue"} 1
penstock_backend_up{backend="records"} ` + records + "\n"
		if err := testutil.CollectAndCompare(c, strings.NewReader(text)); err != nil {
			t.Error(err)
		}
	}
	want("1")
	broken = errors.New("refused")
	now = now.Add(4 * time.Second)
	want("1")
	if asked != 1 {
		t.Errorf("asked %d times", asked)
	}
	now = now.Add(time.Second)
	want("0")
}

// BenchmarkRequest is what measuring costs each request.
func BenchmarkRequest(b *testing.B) {
	timings := admin.NewTimings()
	stored := timings.Completed("uplink")
	b.ReportAllocs()
	for b.Loop() {
		timings.Request("POST", "/webhooks/lorawan", 200, time.Millisecond)
		stored(time.Millisecond)
	}
}

func TestHostsBeyondTheLimitShareALabel(t *testing.T) {
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
