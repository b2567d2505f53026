package admin

import (
	"context"
	"strings"
	"sync"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/penstock/penstock/ingest/httpd"
	"github.com/penstock/penstock/ingest/intake"
	"github.com/penstock/penstock/relay"
	"github.com/penstock/penstock/relay/iot"
	"github.com/penstock/penstock/relay/rule"
	"github.com/penstock/penstock/relay/sim"
)

// metric is a metric with values from S, the result of a read. It is a counter if its name ends in
// _total, and otherwise a gauge.
type metric[S any] struct {
	name, help string
	labels     []string
	values     func(numbers S, emit emit)
}

// emit adds a value with its label values to a metric.
type emit func(value float64, labels ...string)

// collector calls read once for each scrape.
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
	for _, desc := range c.descs {
		ch <- desc
	}
}

// Collect reads the values of the metrics.
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

// column is a metric with a value for each record of a list.
type column[T any] struct {
	name, help string
	value      func(T) float64
}

// newListCollector returns metrics with a value for each record of a list. key returns the label
// values of a record.
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

// emitPerLabel emits each number with its key as the label value.
func emitPerLabel[N int | int64 | uint64](numbers map[string]N, emit emit) {
	for label, n := range numbers {
		emit(float64(n), label)
	}
}

func boolValue(b bool) float64 {
	if b {
		return 1
	}
	return 0
}

// NewJournalCollector returns the metrics of the journals and their processing.
func NewJournalCollector(intakes []*intake.Intake) prometheus.Collector {
	type journal struct {
		intake.Status
		kind string
	}
	read := func() []journal {
		return httpd.Each(intakes, func(i *intake.Intake) journal { return journal{i.Status(), string(i.Kind())} })
	}
	return newListCollector(read, []string{"kind"}, func(j journal) []string { return []string{j.kind} }, []column[journal]{
		{"entries_accepted_total", "Entries written to the journal.", func(j journal) float64 { return float64(j.Accepted) }},
		{"entries_processed_total", "Entries processed.", func(j journal) float64 { return float64(j.Processed) }},
		{"entries_quarantined_total", "Entries quarantined or unrouted.", func(j journal) float64 { return float64(j.Quarantined) }},
		{"entries_deferred_total", "Entries deferred because the account's codecs used up their time or exceeded a limit, or the post was large.", func(j journal) float64 { return float64(j.Deferred) }},
		{"entries_pending", "Entries accepted and not yet processed.", func(j journal) float64 { return float64(j.Lag) }},
		{"processing_stalled", "1 while processing waits for a back end, else 0.", func(j journal) float64 { return boolValue(j.Outage != "") }},
		{"journal_bytes", "Size of the journal on disk.", func(j journal) float64 { return float64(j.Journal.Bytes) }},
		{"journal_needed_bytes", "Size of the journal's segments with unprocessed or quarantined entries. The others are deleted to make room.", func(j journal) float64 { return float64(j.Journal.Needed) }},
		{"journal_limit_bytes", "Size at which the journal deletes entries that are not needed; it accepts no more if there are none.", func(j journal) float64 { return float64(j.Journal.MaxBytes) }},
		{"journal_gaps", "Unreadable ranges of the journal, as found at the start.", func(j journal) float64 { return float64(j.Journal.Gaps) }},
		{"journal_fsyncs_total", "Syncs of the journal to disk.", func(j journal) float64 { return float64(j.Journal.Fsyncs) }},
	}...)
}

// NewStoredCollector returns the metric of the disk usage of records by kind.
func NewStoredCollector(stored func() map[string]int64) prometheus.Collector {
	return newCollector(stored, metric[map[string]int64]{
		"stored_bytes", "Disk usage of the records with their indexes, measured once an hour.", []string{"kind"}, emitPerLabel[int64],
	})
}

// AccountFigures has the figures of an account.
type AccountFigures struct {
	ID              relay.AccountID
	Name            string
	Credits         *int64 // nil if the account never had credit
	Devices, Silent int    // Silent counts devices that sent no frame for a day
	RaisedAlarms    int64
	SIMs            map[sim.State]int64
	SIMsAtLimit     int64
	UsageBytes      float64 // of all SIMs in this month
}

// maxAccountsWithMetrics is the maximum number of accounts with metrics. An account has up to ten
// series, which every gateway exposes.
const maxAccountsWithMetrics = 1000

// NewAccountCollector returns the metrics of the first maxAccountsWithMetrics accounts in figures.
// All gateways expose the same values.
func NewAccountCollector(figures func() []AccountFigures) prometheus.Collector {
	read := func() []AccountFigures {
		accounts := figures()
		return accounts[:min(len(accounts), maxAccountsWithMetrics)]
	}
	labels := []string{"account", "name"}
	column := func(name, help string, value func(AccountFigures) float64) metric[[]AccountFigures] {
		return metric[[]AccountFigures]{name, help, labels, func(accounts []AccountFigures, emit emit) {
			for _, a := range accounts {
				emit(value(a), a.ID.String(), a.Name)
			}
		}}
	}
	return newCollector(read,
		metric[[]AccountFigures]{"account_credits", "Credits left, of accounts that had credit.", labels, func(accounts []AccountFigures, emit emit) {
			for _, a := range accounts {
				if a.Credits != nil {
					emit(float64(*a.Credits), a.ID.String(), a.Name)
				}
			}
		}},
		column("account_devices", "Devices.", func(a AccountFigures) float64 { return float64(a.Devices) }),
		column("account_devices_silent", "Devices not heard for 24 hours.", func(a AccountFigures) float64 { return float64(a.Silent) }),
		column("account_alarms_raised", "Raised alarms.", func(a AccountFigures) float64 { return float64(a.RaisedAlarms) }),
		column("account_sims_at_limit", "SIMs that reached their monthly limit.", func(a AccountFigures) float64 { return float64(a.SIMsAtLimit) }),
		column("account_sim_usage_bytes", "Usage of SIMs in the current month.", func(a AccountFigures) float64 { return a.UsageBytes }),
		metric[[]AccountFigures]{"account_sims", "SIMs by state.", append(labels, "state"), func(accounts []AccountFigures, emit emit) {
			for _, a := range accounts {
				for state, n := range a.SIMs {
					emit(float64(n), a.ID.String(), a.Name, string(state))
				}
			}
		}},
	)
}

// Deliveries has the gauges of the delivery queue and its counters since the start. Fields with a
// JSON name are also in the status.
type Deliveries struct {
	Running   int   `json:"running"`
	Waiting   int   `json:"waiting"`
	Unsaved   int   `json:"unsaved"`
	Delivered int64 `json:"delivered"`
	Retried   int64 `json:"retried"`
	Dead      int64 `json:"dead"`
	Faults    int64 `json:"-"`
	Parked    int   `json:"parked"`
	Open      int   `json:"open_breakers"`
	Opened    int64 `json:"-"`
	Probed    int64 `json:"-"`
}

// NewDeliveryCollector returns the metrics of the delivery queue.
func NewDeliveryCollector(deliveries func() Deliveries) prometheus.Collector {
	return newCollector(deliveries, []metric[Deliveries]{
		{"deliveries_in_flight", "Attempts in progress.", nil, func(d Deliveries, emit emit) { emit(float64(d.Running)) }},
		{"deliveries_queued", "Deliveries in memory that wait for an attempt.", nil, func(d Deliveries, emit emit) { emit(float64(d.Waiting)) }},
		{"deliveries_unsaved", "Outcomes of deliveries that are not saved yet.", nil, func(d Deliveries, emit emit) { emit(float64(d.Unsaved)) }},
		{"deliveries_delivered_total", "Deliveries completed.", nil, func(d Deliveries, emit emit) { emit(float64(d.Delivered)) }},
		{"deliveries_retried_total", "Failed attempts that will be repeated.", nil, func(d Deliveries, emit emit) { emit(float64(d.Retried)) }},
		{"deliveries_dead_total", "Deliveries given up.", nil, func(d Deliveries, emit emit) { emit(float64(d.Dead)) }},
		{"deliveries_faults_total", "Attempts that failed because of a fault of the gateway.", nil, func(d Deliveries, emit emit) { emit(float64(d.Faults)) }},
		{"deliveries_parked", "Deliveries that wait for a breaker, of all gateways.", nil, func(d Deliveries, emit emit) { emit(float64(d.Parked)) }},
		{"breakers_open", "Endpoints with an open breaker, of all gateways.", nil, func(d Deliveries, emit emit) { emit(float64(d.Open)) }},
		{"breakers_opened_total", "Breakers opened by this gateway.", nil, func(d Deliveries, emit emit) { emit(float64(d.Opened)) }},
		{"breakers_probes_total", "Probes of open breakers.", nil, func(d Deliveries, emit emit) { emit(float64(d.Probed)) }},
	}...)
}

// Bind is the state of a bind to a carrier, with its counters since the start. Fields with a JSON
// name are also in the status.
type Bind struct {
	Carrier   string    `json:"-"`
	Name      string    `json:"name"` // unique among the carrier's binds
	Type      string    `json:"type"` // transceiver, receiver or transmitter
	Addr      string    `json:"addr"`
	Bound     bool      `json:"bound"`
	Since     time.Time `json:"since"` // the time of the last change of Bound
	Error     string    `json:"error"` // the reason if Bound is false
	Binds     int64     `json:"-"`
	Messages  int64     `json:"messages"` // accepted
	Receipts  int64     `json:"receipts"` // accepted
	Malformed int64     `json:"-"`        // unreadable PDUs
	Refused   int64     `json:"-"`        // PDUs that could not be written to the journal
	InFlight  int64     `json:"-"`        // PDUs that are being written to the journal
}

// NewBindCollector returns the metrics of the binds to carriers.
func NewBindCollector(binds func() []Bind) prometheus.Collector {
	return newListCollector(binds, []string{"carrier", "bind"}, func(b Bind) []string { return []string{b.Carrier, b.Name} }, []column[Bind]{
		{"carrier_bound", "1 while the bind to the carrier is established.", func(b Bind) float64 { return boolValue(b.Bound) }},
		{"carrier_binds_total", "Binds established.", func(b Bind) float64 { return float64(b.Binds) }},
		{"carrier_messages_total", "Inbound messages accepted.", func(b Bind) float64 { return float64(b.Messages) }},
		{"carrier_receipts_total", "Receipts accepted.", func(b Bind) float64 { return float64(b.Receipts) }},
		{"carrier_pdus_malformed_total", "Unreadable PDUs.", func(b Bind) float64 { return float64(b.Malformed) }},
		{"carrier_pdus_refused_total", "PDUs refused because the journal could not be written.", func(b Bind) float64 { return float64(b.Refused) }},
		{"carrier_pdus_in_flight", "PDUs that are being written to the journal.", func(b Bind) float64 { return float64(b.InFlight) }},
	}...)
}

// Sending has the queue lengths of a carrier, and the outcomes of message parts since the start.
type Sending struct {
	Carrier           string
	Waiting, InFlight int
	Accepted          int
	Rejected          int
	Throttled         int // submissions that the carrier answered with busy or unavailable
	Unknown           int // parts whose response was lost
}

// NewSendingCollector returns the metrics of messages submitted to carriers.
func NewSendingCollector(sending func() []Sending) prometheus.Collector {
	return newListCollector(sending, []string{"carrier"}, func(s Sending) []string { return []string{s.Carrier} }, []column[Sending]{
		{"carrier_parts_queued", "Message parts in the carrier's queue.", func(s Sending) float64 { return float64(s.Waiting) }},
		{"carrier_parts_in_flight", "Message parts submitted and not yet answered by the carrier.", func(s Sending) float64 { return float64(s.InFlight) }},
		{"carrier_parts_accepted_total", "Message parts accepted by the carrier.", func(s Sending) float64 { return float64(s.Accepted) }},
		{"carrier_parts_rejected_total", "Message parts rejected by the carrier.", func(s Sending) float64 { return float64(s.Rejected) }},
		{"carrier_parts_throttled_total", "Submissions throttled by the carrier, or answered that it is unavailable.", func(s Sending) float64 { return float64(s.Throttled) }},
		{"carrier_parts_unknown_total", "Message parts whose answer was lost.", func(s Sending) float64 { return float64(s.Unknown) }},
	}...)
}

// NewCodecCollector returns the metrics of the accounts' codecs.
func NewCodecCollector(read func() iot.Codecs) prometheus.Collector {
	return newCollector(read, []metric[iot.Codecs]{
		{"decoders_suspended", "Decoders suspended because their codecs kept exceeding their time limit.", nil, func(c iot.Codecs, emit emit) { emit(float64(c.Suspended)) }},
		{"decoder_suspensions_total", "Suspensions of decoders.", nil, func(c iot.Codecs, emit emit) { emit(float64(c.Suspensions)) }},
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
		{"credentials_wrong_total", "Wrong tokens, passwords and signatures, by the first part of the path.", []string{"surface"}, func(a attempts, emit emit) { emitPerLabel(a.wrong, emit) }},
		{"credentials_limited_total", "Requests answered 429 before their credential was checked, by the first part of the path.", []string{"surface"}, func(a attempts, emit emit) { emitPerLabel(a.refused, emit) }},
	}...)
}

// NewRuleCollector returns the metrics of rules.
func NewRuleCollector(stats func() rule.Stats) prometheus.Collector {
	return newCollector(stats, []metric[rule.Stats]{
		{"rules_frames_total", "Frames evaluated by rules.", nil, func(s rule.Stats, emit emit) { emit(float64(s.Frames)) }},
		{"rules_outcomes_total", "Outcomes of rules: raised, cleared, repeated, forwarded, or failed (an expression failed, or actions were omitted).", []string{"outcome"}, func(s rule.Stats, emit emit) {
			emitPerLabel(map[string]int64{"raised": s.Raised, "cleared": s.Cleared, "repeated": s.Repeated, "forwarded": s.Forwarded, "failed": s.Failed}, emit)
		}},
		{"rules_omitted_actions_total", "Actions omitted because the frame or the account had too many.", nil, func(s rule.Stats, emit emit) { emit(float64(s.Omitted)) }},
	}...)
}

// NewLedgerCollector returns the metric of the audit of ledgers.
func NewLedgerCollector(faults func() int64) prometheus.Collector {
	return newCollector(faults, metric[int64]{
		"ledger_audit_faults", "Faults found by the last audit of the ledgers.", nil, func(n int64, emit emit) { emit(float64(n)) },
	})
}

// NewLimitCollector returns the metrics of requests and overload.
func NewLimitCollector(stats func() httpd.LimitStats) prometheus.Collector {
	kind := []string{"kind"}
	return newCollector(stats, []metric[httpd.LimitStats]{
		{"requests_in_flight", "Requests in progress.", kind, func(s httpd.LimitStats, emit emit) { emitPerLabel(s.InFlight, emit) }},
		{"requests_waiting", "Requests that wait to be processed.", kind, func(s httpd.LimitStats, emit emit) { emitPerLabel(s.Waiting, emit) }},
		{"requests_body_bytes", "Memory held by request bodies.", kind, func(s httpd.LimitStats, emit emit) { emitPerLabel(s.Bytes, emit) }},
		{"requests_refused_total", "Requests answered 503 and connections closed because of overload.", []string{"kind", "reason"}, func(s httpd.LimitStats, emit emit) {
			for labels, n := range s.Refused {
				emit(float64(n), labels[0], labels[1])
			}
		}},
	}...)
}

// NewSpanCollector returns the metric of trace spans.
func NewSpanCollector(stats func() (sent, dropped uint64)) prometheus.Collector {
	read := func() map[string]uint64 {
		sent, dropped := stats()
		return map[string]uint64{"sent": sent, "dropped": dropped}
	}
	return newCollector(read, metric[map[string]uint64]{
		"spans_total", "Trace spans sent to the collector, and dropped.", []string{"outcome"}, emitPerLabel[uint64],
	})
}

// upMaxAge is the time for which the result of a check is reused, so that frequent scrapes do not
// burden the back ends.
const upMaxAge = 5 * time.Second

// NewUpCollector returns the metric of the states of the back ends.
func NewUpCollector(backends []Backend, now func() time.Time) prometheus.Collector {
	var mu sync.Mutex
	var checkedAt time.Time
	var down map[string]error
	read := func() map[string]error {
		mu.Lock()
		defer mu.Unlock()
		if down == nil || now().Sub(checkedAt) >= upMaxAge {
			down, checkedAt = CheckBackends(context.Background(), backends), now()
		}
		return down
	}
	return newCollector(read, metric[map[string]error]{
		"backend_up", "1 if a back end works, 0 if it is down, as in /readyz.", []string{"backend"}, func(down map[string]error, emit emit) {
			for _, b := range backends {
				emit(boolValue(down[b.Name] == nil), b.Name)
			}
		},
	})
}
