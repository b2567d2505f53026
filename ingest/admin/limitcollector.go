package admin

import (
	"github.com/prometheus/client_golang/prometheus"

	"github.com/penstock/penstock/ingest/httpd"
)

// limitCollector reads what requests use and how many were refused.
type limitCollector struct {
	stats                             func() httpd.LimitStats
	inFlight, waiting, bytes, refused *prometheus.Desc
}

// NewLimitCollector returns the metrics of overload.
func NewLimitCollector(stats func() httpd.LimitStats) prometheus.Collector {
	desc := func(name, help string, labels ...string) *prometheus.Desc {
		return prometheus.NewDesc("penstock_requests_"+name, help, append([]string{"kind"}, labels...), nil)
	}
	return &limitCollector{
		stats:    stats,
		inFlight: desc("in_flight", "Requests that are worked on."),
		waiting:  desc("waiting", "Requests that wait until they are worked on."),
		bytes:    desc("body_bytes", "Memory of the bodies of requests, in bytes."),
		refused:  desc("refused_total", "Requests answered 503, and connections closed, because the gateway was overloaded, since the start.", "reason"),
	}
}

// Describe lists the metrics.
func (c *limitCollector) Describe(ch chan<- *prometheus.Desc) {
	for _, d := range []*prometheus.Desc{c.inFlight, c.waiting, c.bytes, c.refused} {
		ch <- d
	}
}

// Collect reads them.
func (c *limitCollector) Collect(ch chan<- prometheus.Metric) {
	s := c.stats()
	for kind, n := range s.InFlight {
		ch <- prometheus.MustNewConstMetric(c.inFlight, prometheus.GaugeValue, float64(n), kind)
	}
	for kind, n := range s.Waiting {
		ch <- prometheus.MustNewConstMetric(c.waiting, prometheus.GaugeValue, float64(n), kind)
	}
	for kind, n := range s.Bytes {
		ch <- prometheus.MustNewConstMetric(c.bytes, prometheus.GaugeValue, float64(n), kind)
	}
	for labels, n := range s.Refused {
		ch <- prometheus.MustNewConstMetric(c.refused, prometheus.CounterValue, float64(n), labels[0], labels[1])
	}
}
