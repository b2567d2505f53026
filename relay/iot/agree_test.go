package iot_test

import (
	"testing"

	"github.com/penstock/penstock/delivery/embedded/readings"
	"github.com/penstock/penstock/delivery/influx"
	"github.com/penstock/penstock/delivery/influx/influxtest"
	"github.com/penstock/penstock/relay/iot"
	"github.com/penstock/penstock/relay/iot/iottest"
	"github.com/penstock/penstock/relay/relaytest"
)

// TestSQLiteAndInfluxDBAgree compares the aggregates of 10,000 random readings in both stores with
// each other and with a simple computation, for every statistic and granularity.
func TestSQLiteAndInfluxDBAgree(t *testing.T) {
	server := influxtest.Shared(t)
	remote, err := influx.New(influx.Options{URL: server.URL, Bucket: server.NewDatabase(t)})
	relaytest.NoError(t, err)
	embedded, err := readings.Open(t.TempDir(), "")
	relaytest.NoError(t, err)
	t.Cleanup(func() { relaytest.NoError(t, remote.Close(), embedded.Close()) })

	n := 10_000
	if underRace {
		n = 1000 // the search for races needs few readings
	}
	points := iottest.Random("d1", n, 42)
	stores := map[string]iot.ReadingStore{"SQLite": embedded, "InfluxDB": remote}
	for _, s := range stores {
		refused, err := s.Write(t.Context(), iot.Readings{Points: points})
		if err != nil || len(refused) > 0 {
			t.Fatal(refused, err)
		}
	}
	for _, g := range iot.Granularities() {
		for _, statistic := range iot.Statistics() {
			q := iot.AggregateQuery{Query: iot.Query{Account: 1, DeviceID: "d1"}, Statistic: statistic, Granularity: g}
			buckets := make(map[string][]iot.Bucket)
			for name, s := range stores {
				buckets[name], err = s.Aggregate(t.Context(), q)
				relaytest.NoError(t, err)
				iottest.Agree(t, name+": "+string(statistic)+" by "+string(g), buckets[name], iottest.Aggregated(points, g, statistic))
			}
			iottest.Agree(t, "the stores: "+string(statistic)+" by "+string(g), buckets["SQLite"], buckets["InfluxDB"])
		}
	}
}
