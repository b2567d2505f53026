package admin

import (
	"context"
	"strings"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/penstock/penstock/ingest/httpd"
	"github.com/penstock/penstock/ingest/intake"
	"github.com/penstock/penstock/relay/iot"
	"github.com/penstock/penstock/relay/rule"
)

// metric is a metric of numbers that are read together. It is a counter if its name ends
// in _total, else a gauge.
type metric[S any] struct {
	name, help string
	labels     []string
	values     func(numbers S, emit emit)
}

// emit adds a value to a metric, with the values of its labels.
type emit func(value float64, labels ...string)

// collector reads numbers whenever their metrics are requested.
type collector[S any] struct {
	read    func() S
	metrics []metric[S]
	descs   []*prometheus.Desc
}

func newCollector[S any](read func() S, metrics ...metric[S]) prometheus.Collector {
	c := &collector[S]{read: read, metrics: metrics}
	for _, m := range metrics {
		c.descs = append(c.descs, prometheus.NewDesc("penstock_"+m.name, m.help, m.labels, nil))
	}
	return c
}

// Describe lists the metrics.
func (c *collector[S]) Describe(ch chan<- *prometheus.Desc) {
	for _, d := range c.descs {
		ch <- d
	}
}

// Collect reads the numbers.
func (c *collector[S]) Collect(ch chan<- prometheus.Metric) {
	numbers := c.read()
	for i, m := range c.metrics {
		kind := prometheus.GaugeValue
		if strings.HasSuffix(m.name, "_total") {
			kind = prometheus.CounterValue
		}
		m.values(numbers, func(value float64, labels ...string) {
			ch <- prometheus.MustNewConstMetric(c.descs[i], kind, value, labels...)
		})
	}
}

// column is a metric that each record of a list has.
type column[T any] struct {
	name, help string
	value      func(T) float64
}

// newListCollector collects the columns of a list; key returns the values of a record's
// labels.
func newListCollector[T any](read func() []T, labels []string, key func(T) []string, columns ...column[T]) prometheus.Collector {
	metrics := make([]metric[[]T], len(columns))
	for i, col := range columns {
		metrics[i] = metric[[]T]{col.name, col.help, labels, func(list []T, emit emit) {
			for _, record := range list {
				emit(col.value(record), key(record)...)
			}
		}}
	}
	return newCollector(read, metrics...)
}

// perLabel emits numbers by the value of their label.
func perLabel[N int | int64 | uint64](numbers map[string]N, emit emit) {
	for label, n := range numbers {
		emit(float64(n), label)
	}
}

func flag(b bool) float64 {
	if b {
		return 1
	}
	return 0
}

// NewJournalCollector returns the metrics of the journals and of what processes them.
func NewJournalCollector(intakes []*intake.Intake) prometheus.Collector {
	type journal struct {
		intake.Status
		kind string
	}
	read := func() []journal {
		return httpd.Each(intakes, func(in *intake.Intake) journal { return journal{in.Status(), string(in.Kind())} })
	}
	return newListCollector(read, []string{"kind"}, func(j journal) []string { return []string{j.kind} }, []column[journal]{
		{"accepted_total", "Entries written to the journal since the start.", func(j journal) float64 { return float64(j.Accepted) }},
		{"processed_total", "Entries processed since the start.", func(j journal) float64 { return float64(j.Processed) }},
		{"quarantined_total", "Entries quarantined or unrouted since the start.", func(j journal) float64 { return float64(j.Quarantined) }},
		{"deferred_total", "Entries deferred since the start: their account's codecs had used up their time or exceeded a limit, or the post was large.", func(j journal) float64 { return float64(j.Deferred) }},
		{"lag", "Entries accepted and not processed yet.", func(j journal) float64 { return float64(j.Lag) }},
		{"waiting", "1 while processing waits for a back end.", func(j journal) float64 { return flag(j.Waiting != "") }},
		{"journal_bytes", "Bytes of the journal's segments.", func(j journal) float64 { return float64(j.Journal.Bytes) }},
		{"journal_gaps", "Ranges of the journal that could not be read at the start.", func(j journal) float64 { return float64(j.Journal.Gaps) }},
		{"journal_fsyncs_total", "Commits of the journal since the start.", func(j journal) float64 { return float64(j.Journal.Fsyncs) }},
	}...)
}

// NewStoredCollector returns the metric of how many bytes the records of each kind take.
func NewStoredCollector(stored func() map[string]int64) prometheus.Collector {
	return newCollector(stored, metric[map[string]int64]{
		"stored_bytes", "Bytes that records take on disk with their indexes, as of the last hour.", []string{"kind"}, perLabel[int64],
	})
}

// Deliveries holds the queue's counters, named like the metrics.
type Deliveries struct {
	Running, Waiting, Unsaved        int
	Delivered, Retried, Dead, Faults int64
	Parked, Open                     int
	Opened, Probed                   int64
}

// NewDeliveryCollector returns the metrics of the delivery queue.
func NewDeliveryCollector(deliveries func() Deliveries) prometheus.Collector {
	return newCollector(deliveries, []metric[Deliveries]{
		{"deliveries_running", "Attempts under way.", nil, func(d Deliveries, emit emit) { emit(float64(d.Running)) }},
		{"deliveries_waiting", "Deliveries that wait in memory for an attempt.", nil, func(d Deliveries, emit emit) { emit(float64(d.Waiting)) }},
		{"deliveries_unsaved", "Outcomes that could not be saved yet.", nil, func(d Deliveries, emit emit) { emit(float64(d.Unsaved)) }},
		{"deliveries_delivered_total", "Deliveries that arrived since the start.", nil, func(d Deliveries, emit emit) { emit(float64(d.Delivered)) }},
		{"deliveries_retried_total", "Attempts that will be made again, since the start.", nil, func(d Deliveries, emit emit) { emit(float64(d.Retried)) }},
		{"deliveries_dead_total", "Deliveries given up since the start.", nil, func(d Deliveries, emit emit) { emit(float64(d.Dead)) }},
		{"deliveries_faults_total", "Attempts that failed through a fault of our own, since the start.", nil, func(d Deliveries, emit emit) { emit(float64(d.Faults)) }},
		{"deliveries_parked", "Deliveries that wait for a breaker, in all gateways.", nil, func(d Deliveries, emit emit) { emit(float64(d.Parked)) }},
		{"breakers_open", "Endpoints whose breaker is open.", nil, func(d Deliveries, emit emit) { emit(float64(d.Open)) }},
		{"breakers_opened_total", "Breakers opened by this gateway since the start.", nil, func(d Deliveries, emit emit) { emit(float64(d.Opened)) }},
		{"breakers_probes_total", "Probes of open breakers since the start.", nil, func(d Deliveries, emit emit) { emit(float64(d.Probed)) }},
	}...)
}

// Bind is the state of a bind to a carrier, with its counters since the start.
type Bind struct {
	Carrier   string
	Name      string // among the carrier's binds
	Type      string // transceiver, receiver or transmitter
	Addr      string
	Bound     bool
	Since     time.Time // when Bound changed
	Error     string    // why it is not bound
	Binds     int64
	Messages  int64 // accepted
	Receipts  int64 // accepted
	Malformed int64 // could not be read
	Refused   int64 // could not be written to the journal
	InFlight  int64 // on their way to the journal
}

// NewBindCollector returns the metrics of the binds to carriers.
func NewBindCollector(binds func() []Bind) prometheus.Collector {
	return newListCollector(binds, []string{"carrier", "bind"}, func(b Bind) []string { return []string{b.Carrier, b.Name} }, []column[Bind]{
		{"carrier_bound", "1 while the bind to the carrier is established.", func(b Bind) float64 { return flag(b.Bound) }},
		{"carrier_binds_total", "How often the bind was established since the start.", func(b Bind) float64 { return float64(b.Binds) }},
		{"carrier_messages_total", "Messages accepted since the start.", func(b Bind) float64 { return float64(b.Messages) }},
		{"carrier_receipts_total", "Receipts accepted since the start.", func(b Bind) float64 { return float64(b.Receipts) }},
		{"carrier_malformed_total", "PDUs that could not be read, since the start.", func(b Bind) float64 { return float64(b.Malformed) }},
		{"carrier_refused_total", "PDUs that could not be written to the journal, since the start.", func(b Bind) float64 { return float64(b.Refused) }},
		{"carrier_in_flight", "PDUs on their way to the journal.", func(b Bind) float64 { return float64(b.InFlight) }},
	}...)
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

// NewSendingCollector returns the metrics of messages submitted to carriers.
func NewSendingCollector(sending func() []Sending) prometheus.Collector {
	return newListCollector(sending, []string{"carrier"}, func(s Sending) []string { return []string{s.Carrier} }, []column[Sending]{
		{"carrier_sending_waiting", "Parts of messages that wait in the carrier's queue.", func(s Sending) float64 { return float64(s.Waiting) }},
		{"carrier_sending_under_way", "Parts that the carrier owes an answer to.", func(s Sending) float64 { return float64(s.UnderWay) }},
		{"carrier_sending_accepted_total", "Parts that the carrier took, since the start.", func(s Sending) float64 { return float64(s.Accepted) }},
		{"carrier_sending_rejected_total", "Parts that it refused for good, since the start.", func(s Sending) float64 { return float64(s.Rejected) }},
		{"carrier_sending_throttled_total", "Answers that throttle, or that the carrier is unavailable.", func(s Sending) float64 { return float64(s.Throttled) }},
		{"carrier_sending_unknown_total", "Parts whose answer was lost, since the start.", func(s Sending) float64 { return float64(s.Unknown) }},
	}...)
}

// NewCodecCollector returns the metrics of the accounts' codecs.
func NewCodecCollector(read func() iot.Codecs) prometheus.Collector {
	return newCollector(read, []metric[iot.Codecs]{
		{"decoders_suspended", "Decoders that are not run at the moment: their codecs kept running out of time.", nil, func(c iot.Codecs, emit emit) { emit(float64(c.Suspended)) }},
		{"decoder_suspensions_total", "Suspensions of decoders since the start.", nil, func(c iot.Codecs, emit emit) { emit(float64(c.Suspensions)) }},
	}...)
}

// NewAttemptCollector returns the metrics of wrong credentials.
func NewAttemptCollector(counts func() (wrong, refused map[string]uint64)) prometheus.Collector {
	type attempts struct{ wrong, refused map[string]uint64 }
	read := func() (a attempts) {
		a.wrong, a.refused = counts()
		return a
	}
	return newCollector(read, []metric[attempts]{
		{"credentials_wrong_total", "Tokens, passwords and signatures that were wrong, since the start, by surface: the first part of the path.", []string{"surface"}, func(a attempts, emit emit) { perLabel(a.wrong, emit) }},
		{"credentials_limited_total", "Attempts refused with 429 without a look at the credential, since the start, by surface.", []string{"surface"}, func(a attempts, emit emit) { perLabel(a.refused, emit) }},
	}...)
}

// NewRuleCollector returns the metrics of rules.
func NewRuleCollector(stats func() rule.Stats) prometheus.Collector {
	return newCollector(stats, []metric[rule.Stats]{
		{"rules_frames_total", "Frames of accounts with rules that were evaluated, since the start.", nil, func(s rule.Stats, emit emit) { emit(float64(s.Frames)) }},
		{"rules_outcomes_total", "What rules did, since the start: raised, cleared, repeated and forwarded; failed: an expression failed at a frame, or actions were omitted.", []string{"outcome"}, func(s rule.Stats, emit emit) {
			perLabel(map[string]int64{"raised": s.Raised, "cleared": s.Cleared, "repeated": s.Repeated, "forwarded": s.Forwarded, "failed": s.Failed}, emit)
		}},
		{"rules_omitted_actions_total", "Actions that were not performed because the frame or the account had too many, since the start.", nil, func(s rule.Stats, emit emit) { emit(float64(s.Omitted)) }},
	}...)
}

// NewLedgerCollector returns the metric of the audit of ledgers.
func NewLedgerCollector(faults func() int64) prometheus.Collector {
	return newCollector(faults, metric[int64]{
		"ledger_audit_faults", "Faults that the last audit of the ledgers found.", nil, func(n int64, emit emit) { emit(float64(n)) },
	})
}

// NewLimitCollector returns the metrics of overload.
func NewLimitCollector(stats func() httpd.LimitStats) prometheus.Collector {
	kind := []string{"kind"}
	return newCollector(stats, []metric[httpd.LimitStats]{
		{"requests_in_flight", "Requests that are worked on.", kind, func(s httpd.LimitStats, emit emit) { perLabel(s.InFlight, emit) }},
		{"requests_waiting", "Requests that wait until they are worked on.", kind, func(s httpd.LimitStats, emit emit) { perLabel(s.Waiting, emit) }},
		{"requests_body_bytes", "Memory of the bodies of requests, in bytes.", kind, func(s httpd.LimitStats, emit emit) { perLabel(s.Bytes, emit) }},
		{"requests_refused_total", "Requests answered 503, and connections closed, because the gateway was overloaded, since the start.", []string{"kind", "reason"}, func(s httpd.LimitStats, emit emit) {
			for labels, n := range s.Refused {
				emit(float64(n), labels[0], labels[1])
			}
		}},
	}...)
}

// NewSpanCollector returns the metric of spans.
func NewSpanCollector(stats func() (sent, dropped uint64)) prometheus.Collector {
	read := func() map[string]uint64 {
		sent, dropped := stats()
		return map[string]uint64{"sent": sent, "dropped": dropped}
	}
	return newCollector(read, metric[map[string]uint64]{
		"spans_total", "Spans that the collector took, and that were dropped, since the start.", []string{"outcome"}, perLabel[uint64],
	})
}

// upFor is the time for which the metric shows the result of a check, so that frequent
// requests for the metrics do not burden the back ends.
const upFor = 5 * time.Second

// NewUpCollector returns the metric of which back ends work, as /readyz reports them.
func NewUpCollector(backends []Backend, now func() time.Time) prometheus.Collector {
	var mu sync.Mutex
	var checked time.Time
	var down map[string]error
	read := func() map[string]error {
		mu.Lock()
		defer mu.Unlock()
		if down == nil || now().Sub(checked) >= upFor {
			down, checked = Down(context.Background(), backends), now()
		}
		return down
	}
	return newCollector(read, metric[map[string]error]{
		"backend_up", "1 if a back end works, 0 if it is down, as in /readyz.", []string{"backend"}, func(down map[string]error, emit emit) {
			for _, b := range backends {
				emit(flag(down[b.Name] == nil), b.Name)
			}
		},
	})
}
