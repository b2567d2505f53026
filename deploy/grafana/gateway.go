package grafana

// MetricsUID is the uid that datasource.yaml gives to Prometheus.
const MetricsUID = "penstock-metrics"

// Gateway shows the gateway itself, by its metrics: what comes in and goes out, what
// waits, how long it takes, and which back ends work.
func Gateway() Dashboard {
	d := newDashboard("penstock-gateway", "Penstock: the gateway", "What /metrics says of the gateways, by Prometheus.", nil, []Panel{
		metricFigure("Back ends that are down", "short", size{6, 4}, `sum(1 - penstock_backend_up) or vector(0)`),
		metricFigure("Entries that wait", "short", size{6, 4}, `sum(penstock_lag)`),
		metricFigure("Open breakers", "short", size{6, 4}, `max(penstock_breakers_open)`),
		metricFigure("Deliveries that wait for a breaker", "short", size{6, 4}, `max(penstock_deliveries_parked)`),
		metricGraph("Accepted", "ops", metric(`sum by (kind) (rate(penstock_accepted_total[$__rate_interval]))`, "{{kind}}")),
		metricGraph("Processed", "ops", metric(`sum by (kind) (rate(penstock_processed_total[$__rate_interval]))`, "{{kind}}")),
		metricGraph("Waiting", "short", metric(`sum by (instance, kind) (penstock_lag)`, "{{instance}} {{kind}}")),
		metricGraph("From acceptance to stored", "s", metric(quantile("0.5", "penstock_entry_duration_seconds", "kind"), "{{kind}}, half"), metric(quantile("0.99", "penstock_entry_duration_seconds", "kind"), "{{kind}}, 99 %")),
		metricGraph("Deliveries", "ops",
			metric(`sum(rate(penstock_deliveries_delivered_total[$__rate_interval]))`, "delivered"),
			metric(`sum(rate(penstock_deliveries_retried_total[$__rate_interval]))`, "retried"),
			metric(`sum(rate(penstock_deliveries_dead_total[$__rate_interval]))`, "dead")),
		metricGraph("Deliveries until they arrive", "s", metric(quantile("0.5", "penstock_delivery_duration_seconds", "kind"), "{{kind}}, half"), metric(quantile("0.99", "penstock_delivery_duration_seconds", "kind"), "{{kind}}, 99 %")),
		metricGraph("Requests", "reqps", metric(`sum by (code) (rate(penstock_http_request_duration_seconds_count[$__rate_interval]))`, "{{code}}")),
		metricGraph("Requests, the slowest routes", "s", metric(`topk(10, `+quantile("0.99", "penstock_http_request_duration_seconds", "route")+`)`, "{{route}}")),
		metricGraph("Syncs of the journal, 99 %", "s", metric(quantile("0.99", "penstock_journal_fsync_duration_seconds", "kind"), "{{kind}}")),
		metricGraph("Calls of back ends, 99 %", "s", metric(`histogram_quantile(0.99, sum by (backend, operation, le) (rate(penstock_backend_call_duration_seconds_bucket[$__rate_interval])))`, "{{backend}} {{operation}}")),
		metricGraph("Quarantined and unrouted", "ops", metric(`sum by (kind) (rate(penstock_quarantined_total[$__rate_interval]))`, "{{kind}}")),
		metricGraph("Refused for overload", "ops", metric(`sum by (kind, reason) (rate(penstock_requests_refused_total[$__rate_interval]))`, "{{kind}}, {{reason}}")),
		metricGraph("CPU", "short", metric(`rate(process_cpu_seconds_total[$__rate_interval])`, "{{instance}}")),
		metricGraph("Memory", "bytes", metric(`process_resident_memory_bytes`, "{{instance}}")),
		metricGraph("Size of the journal", "bytes", metric(`sum by (instance) (penstock_journal_bytes)`, "{{instance}}")),
		metricGraph("Back ends", "short", metric(`min by (backend) (penstock_backend_up)`, "{{backend}}")).about("1: works. 0: down, at one gateway at least."),
	})
	d.Time.From = "now-6h"
	return d
}

// quantile is a quantile of a histogram by a label.
func quantile(q, histogram, by string) string {
	return `histogram_quantile(` + q + `, sum by (` + by + `, le) (rate(` + histogram + `_bucket[$__rate_interval])))`
}

// metric is a query in PromQL; legend names the lines.
func metric(expr, legend string) Target {
	return Target{Datasource: metricSource(), Expr: expr, LegendFormat: legend}
}

func metricSource() Datasource { return Datasource{Type: "prometheus", UID: MetricsUID} }

func metricGraph(title, unit string, targets ...Target) Panel {
	p := graph(title, unit, size{12, 8}, targets...)
	p.Datasource = metricSource()
	return p
}

func metricFigure(title, unit string, s size, expr string) Panel {
	p := figure(title, unit, s, metric(expr, ""))
	p.Datasource = metricSource()
	return p
}
