package admin

import (
	"strconv"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"
)

// Timings has histograms of durations, and counters of message parts and delivery attempts.
type Timings struct {
	requests, fsyncs, stored, deliveries, backends *prometheus.HistogramVec
	parts, attempts                                *prometheus.CounterVec

	mu    sync.Mutex
	hosts map[string]bool // the hosts with their own label
}

// maxHosts is the maximum number of hosts with their own label. All other hosts share a label.
const maxHosts = 200

// NewTimings returns a Timings without measurements.
func NewTimings() *Timings {
	histogram := func(name, help string, buckets []float64, labels ...string) *prometheus.HistogramVec {
		return prometheus.NewHistogramVec(prometheus.HistogramOpts{Name: name, Help: help, Buckets: buckets}, labels)
	}
	// short has the buckets for requests and calls, long for entries and deliveries with retries.
	short := []float64{.0005, .001, .0025, .005, .01, .025, .05, .1, .25, .5, 1, 2.5, 5, 10, 30}
	long := []float64{.01, .025, .05, .1, .25, .5, 1, 2.5, 5, 10, 30, 60, 300, 1800, 10800, 43200}
	return &Timings{
		requests:   histogram("penstock_http_request_duration_seconds", "Duration of requests by method, route and status class.", short, "method", "route", "code"),
		fsyncs:     histogram("penstock_journal_fsync_duration_seconds", "Duration of syncs of the journal to disk. A sync covers all entries that wait for it.", short, "kind"),
		stored:     histogram("penstock_entry_duration_seconds", "Time from the acceptance of an entry until it is stored, quarantined or deferred.", long, "kind"),
		deliveries: histogram("penstock_delivery_duration_seconds", "Time from the creation of a delivery until it is delivered.", long, "kind"),
		backends:   histogram("penstock_backend_call_duration_seconds", "Duration of calls to back ends by operation.", short, "backend", "operation"),

		parts: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "penstock_sms_parts_total", Help: "Outcomes of message parts by carrier, account and state.",
		}, []string{"carrier", "account", "state"}),
		attempts: prometheus.NewCounterVec(prometheus.CounterOpts{
			Name: "penstock_delivery_attempts_total", Help: "Attempts of deliveries by host and the state that follows. The host is \"other\" above 200 hosts.",
		}, []string{"host", "state"}),
		hosts: make(map[string]bool),
	}
}

// Collectors returns the collectors to register.
func (t *Timings) Collectors() []prometheus.Collector {
	return []prometheus.Collector{t.requests, t.fsyncs, t.stored, t.deliveries, t.backends, t.parts, t.attempts}
}

// Request measures a request by its method, the registered route and the status.
func (t *Timings) Request(method, route string, status int, duration time.Duration) {
	t.requests.WithLabelValues(method, route, strconv.Itoa(status/100)+"xx").Observe(duration.Seconds())
}

// Fsync returns a function that measures the syncs of the journal of a kind.
func (t *Timings) Fsync(kind string) func(duration time.Duration) {
	observer := t.fsyncs.WithLabelValues(kind)
	return func(duration time.Duration) { observer.Observe(duration.Seconds()) }
}

// Completed returns a function that measures the entries of a kind.
func (t *Timings) Completed(kind string) func(duration time.Duration) {
	observer := t.stored.WithLabelValues(kind)
	return func(duration time.Duration) { observer.Observe(duration.Seconds()) }
}

// Delivered measures a completed delivery of a kind.
func (t *Timings) Delivered(kind string, duration time.Duration) {
	t.deliveries.WithLabelValues(kind).Observe(duration.Seconds())
}

// Part counts the outcome of a message part.
func (t *Timings) Part(carrier, account, state string) {
	t.parts.WithLabelValues(carrier, account, state).Inc()
}

// Attempt counts an attempt of a delivery to a host, and the state that follows.
func (t *Timings) Attempt(host, state string) {
	t.mu.Lock()
	if len(t.hosts) < maxHosts {
		t.hosts[host] = true
	}
	if !t.hosts[host] {
		host = "other"
	}
	t.mu.Unlock()
	t.attempts.WithLabelValues(host, state).Inc()
}

// Backend returns a function that measures the calls to a back end. The function of a nil *Timings
// measures nothing.
func (t *Timings) Backend(name string) func(operation string, duration time.Duration) {
	if t == nil {
		return func(string, time.Duration) {}
	}
	calls := t.backends.MustCurryWith(prometheus.Labels{"backend": name})
	return func(operation string, duration time.Duration) {
		calls.WithLabelValues(operation).Observe(duration.Seconds())
	}
}

// NewBuildInfo returns the metric with the versions of the gateway and of Go.
func NewBuildInfo(version, goVersion string) prometheus.Collector {
	info := prometheus.NewGauge(prometheus.GaugeOpts{
		Name: "penstock_build_info", Help: "The version of the gateway and of Go; always 1.",
		ConstLabels: prometheus.Labels{"version": version, "goversion": goVersion},
	})
	info.Set(1)
	return info
}

// NewCertificateMetric returns the metric with the expiry of the certificate.
func NewCertificateMetric(expires func() time.Time) prometheus.Collector {
	return prometheus.NewGaugeFunc(prometheus.GaugeOpts{
		Name: "penstock_tls_certificate_expiry_timestamp_seconds", Help: "Expiry of the listener's certificate, in seconds since 1970.",
	}, func() float64 { return float64(expires().Unix()) })
}
