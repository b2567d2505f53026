package admin

import "github.com/prometheus/client_golang/prometheus"

// spanCollector reads what became of spans.
type spanCollector struct {
	stats func() (sent, dropped uint64)
	spans *prometheus.Desc
}

// NewSpanCollector returns the metric of spans.
func NewSpanCollector(stats func() (sent, dropped uint64)) prometheus.Collector {
	return &spanCollector{stats, prometheus.NewDesc("penstock_spans_total", "Spans that the collector took, and that were dropped, since the start.", []string{"outcome"}, nil)}
}

// Describe lists the metric.
func (c *spanCollector) Describe(ch chan<- *prometheus.Desc) { ch <- c.spans }

// Collect reads it.
func (c *spanCollector) Collect(ch chan<- prometheus.Metric) {
	sent, dropped := c.stats()
	ch <- prometheus.MustNewConstMetric(c.spans, prometheus.CounterValue, float64(sent), "sent")
	ch <- prometheus.MustNewConstMetric(c.spans, prometheus.CounterValue, float64(dropped), "dropped")
}
