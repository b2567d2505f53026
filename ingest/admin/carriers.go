package admin

import "github.com/prometheus/client_golang/prometheus"

// Carrier holds the counters of a bind to a carrier, since the start.
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

// Sending holds the current queue length of a carrier and, since the start, the
// outcomes of message parts.
type Sending struct {
	Carrier           string
	Waiting, UnderWay int
	Accepted          int
	Rejected          int
	Throttled         int // responses that the carrier is busy or unavailable
	Unknown           int // parts whose response was lost
}

const (
	counter = prometheus.CounterValue
	gauge   = prometheus.GaugeValue
)

// NewCarrierCollector returns the metrics of the binds to carriers.
func NewCarrierCollector(carriers func() []Carrier) prometheus.Collector {
	c := &perCarrier[Carrier]{all: carriers, name: func(c Carrier) string { return c.Name }}
	c.add("bound", "1 while the carrier is bound.", gauge, func(c Carrier) float64 { return flag(c.Bound) })
	c.add("binds_total", "Binds since the start.", counter, func(c Carrier) float64 { return float64(c.Binds) })
	c.add("messages_total", "Messages accepted since the start.", counter, func(c Carrier) float64 { return float64(c.Messages) })
	c.add("receipts_total", "Receipts accepted since the start.", counter, func(c Carrier) float64 { return float64(c.Receipts) })
	c.add("malformed_total", "PDUs that could not be read, since the start.", counter, func(c Carrier) float64 { return float64(c.Malformed) })
	c.add("refused_total", "PDUs that could not be written to the journal, since the start.", counter, func(c Carrier) float64 { return float64(c.Refused) })
	c.add("in_flight", "PDUs on their way to the journal.", gauge, func(c Carrier) float64 { return float64(c.InFlight) })
	return c
}

// NewSendingCollector returns the metrics of messages submitted to carriers.
func NewSendingCollector(sending func() []Sending) prometheus.Collector {
	c := &perCarrier[Sending]{all: sending, name: func(s Sending) string { return s.Carrier }}
	c.add("sending_waiting", "Parts of messages in the carrier's line.", gauge, func(s Sending) float64 { return float64(s.Waiting) })
	c.add("sending_under_way", "Parts that the carrier owes an answer to.", gauge, func(s Sending) float64 { return float64(s.UnderWay) })
	c.add("sending_accepted_total", "Parts that the carrier took, since the start.", counter, func(s Sending) float64 { return float64(s.Accepted) })
	c.add("sending_rejected_total", "Parts that it refused for good, since the start.", counter, func(s Sending) float64 { return float64(s.Rejected) })
	c.add("sending_throttled_total", "Answers that said to go slower, or that nobody is there.", counter, func(s Sending) float64 { return float64(s.Throttled) })
	c.add("sending_unknown_total", "Parts whose answer was lost, since the start.", counter, func(s Sending) float64 { return float64(s.Unknown) })
	return c
}

// perCarrier collects metrics that each carrier has.
type perCarrier[T any] struct {
	all     func() []T
	name    func(T) string
	metrics []carrierMetric[T]
}

type carrierMetric[T any] struct {
	desc  *prometheus.Desc
	kind  prometheus.ValueType
	value func(T) float64
}

func (c *perCarrier[T]) add(name, help string, kind prometheus.ValueType, value func(T) float64) {
	desc := prometheus.NewDesc("penstock_carrier_"+name, help, []string{"carrier"}, nil)
	c.metrics = append(c.metrics, carrierMetric[T]{desc, kind, value})
}

// Describe lists the metrics.
func (c *perCarrier[T]) Describe(ch chan<- *prometheus.Desc) {
	for _, m := range c.metrics {
		ch <- m.desc
	}
}

// Collect reads the numbers.
func (c *perCarrier[T]) Collect(ch chan<- prometheus.Metric) {
	for _, carrier := range c.all() {
		for _, m := range c.metrics {
			ch <- prometheus.MustNewConstMetric(m.desc, m.kind, m.value(carrier), c.name(carrier))
		}
	}
}
