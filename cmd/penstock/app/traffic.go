package app

import (
	"path/filepath"

	"github.com/penstock/penstock/ingest/admin"
	"github.com/penstock/penstock/ingest/admin/traffic"
	"github.com/penstock/penstock/ingest/intake"
)

// trafficFile contains the traffic of the last day, in the data directory.
const trafficFile = "traffic.ring"

// trafficSeries returns the series of the charts in the console.
func trafficSeries() []traffic.Series {
	return []traffic.Series{
		{Name: "uplink"}, {Name: "sms"}, {Name: "receipt"}, {Name: "cdr"}, {Name: "quarantined"},
		{Name: "delivered"}, {Name: "retried"}, {Name: "dead"}, {Name: "parts_accepted"}, {Name: "parts_rejected"},
		{Name: "lag", Max: true},
	}
}

// openTraffic opens the file of the last day's traffic.
func (g *Gateway) openTraffic(c core, p admin.Program) *traffic.Ring {
	ring := traffic.Open(filepath.Join(g.cfg.DataDir, trafficFile), trafficSeries(), g.log)
	g.onClose(ring.Close)
	g.onStart(traffic.NewSampler(ring, func() []uint64 { return countTraffic(c.proc.listedIntakes(), p) }).Run)
	return ring
}

// countTraffic returns the counters in the order of trafficSeries.
func countTraffic(intakes []*intake.Intake, p admin.Program) []uint64 {
	counters := make([]uint64, 0, len(trafficSeries()))
	var quarantined, lag uint64
	for _, intake := range intakes {
		s := intake.Status()
		counters = append(counters, s.Accepted)
		quarantined += s.Quarantined
		lag += s.Lag
	}
	q := p.Queue()
	counters = append(counters, quarantined, uint64(q.Delivered), uint64(q.Retried), uint64(q.Dead)) //nolint:gosec // counters
	var accepted, rejected int
	for _, s := range p.Sending() {
		accepted += s.Accepted
		rejected += s.Rejected
	}
	return append(counters, uint64(accepted), uint64(rejected), lag) //nolint:gosec // counters
}
