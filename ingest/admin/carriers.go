package admin

import "github.com/prometheus/client_golang/prometheus"

// Carrier is what is counted of a bind to a carrier. The counts are since the
// start.
type Carrier struct {
	Name      string
	Bound     bool
	Binds     int64
	Messages  int64 // accepted
	Receipts  int64 // accepted
	Malformed int64 // could not be read
	Refused   int64 // could not be written to the journal
	InFlight  int64 // on their way to the journal
}

// carrierMetric is one of the metrics that each carrier has.
type carrierMetric struct {
	desc  *prometheus.Desc
	kind  prometheus.ValueType
	value func(Carrier) float64
}

type carrierCollector struct {
	carriers func() []Carrier
	metrics  []carrierMetric
}

// NewCarrierCollector returns the metrics of the binds to carriers.
func NewCarrierCollector(carriers func() []Carrier) prometheus.Collector {
	c := &carrierCollector{carriers: carriers}
	add := func(name, help string, kind prometheus.ValueType, value func(Carrier) float64) {
		c.metrics = append(c.metrics, carrierMetric{prometheus.NewDesc("penstock_carrier_"+name, help, []string{"carrier"}, nil), kind, value})
	}
	const counter, gauge = prometheus.CounterValue, prometheus.GaugeValue
	add("bound", "1 while the carrier is bound.", gauge, func(c Carrier) float64 { return flag(c.Bound) })
	add("binds_total", "Binds since the start.", counter, func(c Carrier) float64 { return float64(c.Binds) })
	add("messages_total", "Messages accepted since the start.", counter, func(c Carrier) float64 { return float64(c.Messages) })
	add("receipts_total", "Receipts accepted since the start.", counter, func(c Carrier) float64 { return float64(c.Receipts) })
	add("malformed_total", "PDUs that could not be read, since the start.", counter, func(c Carrier) float64 { return float64(c.Malformed) })
	add("refused_total", "PDUs that could not be written to the journal, since the start.", counter, func(c Carrier) float64 { return float64(c.Refused) })
	add("in_flight", "PDUs on their way to the journal.", gauge, func(c Carrier) float64 { return float64(c.InFlight) })
	return c
}

// Describe lists the metrics.
func (c *carrierCollector) Describe(ch chan<- *prometheus.Desc) {
	for _, m := range c.metrics {
		ch <- m.desc
	}
}

// Collect reads the numbers.
func (c *carrierCollector) Collect(ch chan<- prometheus.Metric) {
	for _, carrier := range c.carriers() {
		for _, m := range c.metrics {
			ch <- prometheus.MustNewConstMetric(m.desc, m.kind, m.value(carrier), carrier.Name)
		}
	}
}
