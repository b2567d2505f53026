package admin

import (
	"github.com/prometheus/client_golang/prometheus"

	"github.com/penstock/penstock/ingest/intake"
)

// Deliveries is what the queue counts; the names are those of the metrics.
type Deliveries struct {
	Running, Waiting, Unsaved        int
	Delivered, Retried, Dead, Faults int64
	Held, Open                       int
	Opened, Probed                   int64
}

// collector reads every number when it is asked for it.
type collector struct {
	intakes    []*intake.Intake
	deliveries func() Deliveries
	stored     func() map[string]int64
	desc       map[string]*prometheus.Desc
}

// NewCollector returns the gateway's own metrics; stored is how many bytes the
// records of each kind take.
func NewCollector(intakes []*intake.Intake, deliveries func() Deliveries, stored func() map[string]int64) prometheus.Collector {
	c := &collector{intakes: intakes, deliveries: deliveries, stored: stored, desc: make(map[string]*prometheus.Desc)}
	for name, help := range map[string]string{
		"accepted_total":  "Entries written to the journal since the start.",
		"processed_total": "Entries processed since the start.",
		"set_aside_total": "Entries set aside since the start: quarantined or unrouted.",
		"lag":             "Entries accepted and not processed yet.",
		"waiting":         "1 while processing waits for a back end.",
		"journal_bytes":   "Bytes of the journal's segments.",
		"journal_gaps":    "Ranges of the journal that could not be read at the start.",
		"journal_fsyncs":  "Commits of the journal since the start.",
		"stored_bytes":    "Bytes that records take on disk with their indexes, as of the last hour.",
	} {
		c.desc[name] = prometheus.NewDesc("penstock_"+name, help, []string{"kind"}, nil)
	}
	for name, help := range map[string]string{
		"deliveries_running":         "Attempts under way.",
		"deliveries_waiting":         "Deliveries that wait in memory for their first attempt.",
		"deliveries_unsaved":         "Outcomes that could not be saved yet.",
		"deliveries_delivered_total": "Deliveries that arrived since the start.",
		"deliveries_retried_total":   "Attempts that will be made again, since the start.",
		"deliveries_dead_total":      "Deliveries given up since the start.",
		"deliveries_faults_total":    "Attempts that failed through a fault of our own, since the start.",
		"deliveries_held":            "Deliveries that wait for a breaker, in all gateways.",
		"breakers_open":              "Endpoints whose breaker is open.",
		"breakers_opened_total":      "Breakers opened by this gateway since the start.",
		"breakers_probes_total":      "Probes of open breakers since the start.",
	} {
		c.desc[name] = prometheus.NewDesc("penstock_"+name, help, nil, nil)
	}
	return c
}

// Describe lists the metrics.
func (c *collector) Describe(ch chan<- *prometheus.Desc) {
	for _, d := range c.desc {
		ch <- d
	}
}

// Collect reads the numbers.
func (c *collector) Collect(ch chan<- prometheus.Metric) {
	emit := func(name string, t prometheus.ValueType, v float64, labels ...string) {
		ch <- prometheus.MustNewConstMetric(c.desc[name], t, v, labels...)
	}
	for _, in := range c.intakes {
		s, kind := in.Status(), string(in.Kind())
		emit("accepted_total", prometheus.CounterValue, float64(s.Accepted), kind)
		emit("processed_total", prometheus.CounterValue, float64(s.Processed), kind)
		emit("set_aside_total", prometheus.CounterValue, float64(s.SetAside), kind)
		emit("lag", prometheus.GaugeValue, float64(s.Lag), kind)
		emit("waiting", prometheus.GaugeValue, flag(s.Waiting != ""), kind)
		emit("journal_bytes", prometheus.GaugeValue, float64(s.Journal.Bytes), kind)
		emit("journal_gaps", prometheus.GaugeValue, float64(s.Journal.Gaps), kind)
		emit("journal_fsyncs", prometheus.CounterValue, float64(s.Journal.Fsyncs), kind)
	}
	for kind, n := range c.stored() {
		emit("stored_bytes", prometheus.GaugeValue, float64(n), kind)
	}
	d := c.deliveries()
	emit("deliveries_running", prometheus.GaugeValue, float64(d.Running))
	emit("deliveries_waiting", prometheus.GaugeValue, float64(d.Waiting))
	emit("deliveries_unsaved", prometheus.GaugeValue, float64(d.Unsaved))
	emit("deliveries_delivered_total", prometheus.CounterValue, float64(d.Delivered))
	emit("deliveries_retried_total", prometheus.CounterValue, float64(d.Retried))
	emit("deliveries_dead_total", prometheus.CounterValue, float64(d.Dead))
	emit("deliveries_faults_total", prometheus.CounterValue, float64(d.Faults))
	emit("deliveries_held", prometheus.GaugeValue, float64(d.Held))
	emit("breakers_open", prometheus.GaugeValue, float64(d.Open))
	emit("breakers_opened_total", prometheus.CounterValue, float64(d.Opened))
	emit("breakers_probes_total", prometheus.CounterValue, float64(d.Probed))
}

func flag(b bool) float64 {
	if b {
		return 1
	}
	return 0
}
