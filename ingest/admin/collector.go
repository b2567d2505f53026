package admin

import (
	"github.com/prometheus/client_golang/prometheus"

	"github.com/penstock/penstock/ingest/intake"
	"github.com/penstock/penstock/relay/iot"
	"github.com/penstock/penstock/relay/rule"
)

// Deliveries holds the queue's counters, named like the metrics.
type Deliveries struct {
	Running, Waiting, Unsaved        int
	Delivered, Retried, Dead, Faults int64
	Parked, Open                     int
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
		"accepted_total":       "Entries written to the journal since the start.",
		"processed_total":      "Entries processed since the start.",
		"quarantined_total":    "Entries quarantined or unrouted since the start.",
		"deferred_total":       "Entries deferred since the start: their account's codecs had used up their time.",
		"lag":                  "Entries accepted and not processed yet.",
		"waiting":              "1 while processing waits for a back end.",
		"journal_bytes":        "Bytes of the journal's segments.",
		"journal_gaps":         "Ranges of the journal that could not be read at the start.",
		"journal_fsyncs_total": "Commits of the journal since the start.",
		"stored_bytes":         "Bytes that records take on disk with their indexes, as of the last hour.",
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
		"deliveries_parked":          "Deliveries that wait for a breaker, in all gateways.",
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
		emit("quarantined_total", prometheus.CounterValue, float64(s.Quarantined), kind)
		emit("deferred_total", prometheus.CounterValue, float64(s.Deferred), kind)
		emit("lag", prometheus.GaugeValue, float64(s.Lag), kind)
		emit("waiting", prometheus.GaugeValue, flag(s.Waiting != ""), kind)
		emit("journal_bytes", prometheus.GaugeValue, float64(s.Journal.Bytes), kind)
		emit("journal_gaps", prometheus.GaugeValue, float64(s.Journal.Gaps), kind)
		emit("journal_fsyncs_total", prometheus.CounterValue, float64(s.Journal.Fsyncs), kind)
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
	emit("deliveries_parked", prometheus.GaugeValue, float64(d.Parked))
	emit("breakers_open", prometheus.GaugeValue, float64(d.Open))
	emit("breakers_opened_total", prometheus.CounterValue, float64(d.Opened))
	emit("breakers_probes_total", prometheus.CounterValue, float64(d.Probed))
}

// NewCodecMetrics returns the metrics of the accounts' codecs.
func NewCodecMetrics(read func() iot.Codecs) []prometheus.Collector {
	return []prometheus.Collector{
		prometheus.NewGaugeFunc(prometheus.GaugeOpts{
			Name: "penstock_decoders_suspended", Help: "Decoders that are not run at the moment: their codecs kept running out of time.",
		}, func() float64 { return float64(read().Suspended) }),
		prometheus.NewCounterFunc(prometheus.CounterOpts{
			Name: "penstock_decoder_suspensions_total", Help: "Suspensions of decoders since the start.",
		}, func() float64 { return float64(read().Suspensions) }),
	}
}

func flag(b bool) float64 {
	if b {
		return 1
	}
	return 0
}

// authFailureCollector reads how many credentials were wrong.
type authFailureCollector struct {
	counts         func() (wrong, refused map[string]uint64)
	wrong, refused *prometheus.Desc
}

// NewAttemptCollector returns the metrics of wrong credentials.
func NewAttemptCollector(counts func() (wrong, refused map[string]uint64)) prometheus.Collector {
	return &authFailureCollector{
		counts:  counts,
		wrong:   prometheus.NewDesc("penstock_credentials_wrong_total", "Tokens, passwords and signatures that were wrong, since the start, by surface: the first part of the path.", []string{"surface"}, nil),
		refused: prometheus.NewDesc("penstock_credentials_limited_total", "Attempts refused with 429 without a look at the credential, since the start, by surface.", []string{"surface"}, nil),
	}
}

// Describe lists the metrics.
func (c *authFailureCollector) Describe(ch chan<- *prometheus.Desc) {
	ch <- c.wrong
	ch <- c.refused
}

// Collect reads them.
func (c *authFailureCollector) Collect(ch chan<- prometheus.Metric) {
	wrong, refused := c.counts()
	for surface, n := range wrong {
		ch <- prometheus.MustNewConstMetric(c.wrong, prometheus.CounterValue, float64(n), surface)
	}
	for surface, n := range refused {
		ch <- prometheus.MustNewConstMetric(c.refused, prometheus.CounterValue, float64(n), surface)
	}
}

// ruleCollector reads what rules count.
type ruleCollector struct {
	stats            func() rule.Stats
	frames, outcomes *prometheus.Desc
}

// NewRuleCollector returns the metrics of rules.
func NewRuleCollector(stats func() rule.Stats) prometheus.Collector {
	return &ruleCollector{
		stats:    stats,
		frames:   prometheus.NewDesc("penstock_rules_frames_total", "Frames of accounts with rules that were evaluated, since the start.", nil, nil),
		outcomes: prometheus.NewDesc("penstock_rules_outcomes_total", "What rules did, since the start: raised, cleared, repeated and forwarded; failed: an expression failed at a frame.", []string{"outcome"}, nil),
	}
}

// Describe lists the metrics.
func (c *ruleCollector) Describe(ch chan<- *prometheus.Desc) {
	ch <- c.frames
	ch <- c.outcomes
}

// Collect reads them.
func (c *ruleCollector) Collect(ch chan<- prometheus.Metric) {
	s := c.stats()
	ch <- prometheus.MustNewConstMetric(c.frames, prometheus.CounterValue, float64(s.Frames))
	for outcome, n := range map[string]int64{
		"raised": s.Raised, "cleared": s.Cleared, "repeated": s.Repeated, "forwarded": s.Forwarded, "failed": s.Failed,
	} {
		ch <- prometheus.MustNewConstMetric(c.outcomes, prometheus.CounterValue, float64(n), outcome)
	}
}
