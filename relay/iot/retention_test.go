package iot_test

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/penstock/penstock/delivery/influx"
	"github.com/penstock/penstock/delivery/influx/influxtest"
	"github.com/penstock/penstock/relay/iot"
	"github.com/penstock/penstock/relay/relaytest"
)

func TestReadingsAreKeptAsLongAsTheirSensorSays(t *testing.T) {
	server := influxtest.Shared(t)
	for _, tc := range []struct {
		name string
		open func() iot.ReadingStore
	}{
		{"in SQLite", nil},
		{"in InfluxDB", func() iot.ReadingStore {
			s, err := influx.New(influx.Options{URL: server.URL, Bucket: server.NewDatabase(t)})
			relaytest.NoError(t, err)
			t.Cleanup(func() { relaytest.NoError(t, s.Close()) })
			return s
		}},
	} {
		t.Run(tc.name, func(t *testing.T) {
			g := newGateway(t)
			if tc.open != nil {
				g.readings.ReadingStore = tc.open()
			}
			testRetention(t, g)
		})
	}
}

// testRetention ingests a frame on each of 70 days. The temperature has a retention of 30 days, the
// humidity has none.
func testRetention(t *testing.T, g *gateway) {
	g.stored(g.frame("r0", values("temperature", 0, "humidity", 0)))
	keep := func(days int) {
		t.Helper()
		_, err := g.ChangeSensor(t.Context(), 1, iot.SensorID(g.device(1).ID, "temperature"), iot.SensorChange{RetentionDays: new(days)})
		relaytest.NoError(t, err)
	}
	keep(30)
	count := func() string {
		t.Helper()
		var temperatures, humidities int
		for _, line := range g.history(1) {
			if line[0] == 't' {
				temperatures++
			} else {
				humidities++
			}
		}
		return fmt.Sprint(temperatures, " and ", humidities)
	}
	is := func(when, want string) {
		t.Helper()
		relaytest.NoError(t, g.Expire(t.Context(), 1), g.Expire(t.Context(), 2))
		if got := count(); got != want {
			t.Errorf("%s: %s, want %s", when, got, want)
		}
	}
	for day := 1; day <= 70; day++ {
		g.now = g.now.AddDate(0, 0, 1)
		g.stored(g.frame(fmt.Sprint("r", day), values("temperature", day, "humidity", day)))
		if day == 30 {
			is("when the oldest is thirty days old", "31 and 31")
			g.now = g.now.Add(time.Nanosecond)
			is("a nanosecond later", "30 and 31")
			g.now = g.now.Add(-time.Nanosecond)
		}
	}
	if got := count(); got != "70 and 71" {
		t.Errorf("before it is enforced again: %s", got)
	}
	is("after 70 days", "31 and 71")
	if got := g.history(1)[0]; !slices.Contains([]string{"temperature=70", "humidity=70"}, got) {
		t.Errorf("the newest is %s", got)
	}
	keep(0)
	g.now = g.now.AddDate(5, 0, 0)
	is("kept for good from now on", "31 and 71")
	keep(1)
	is("kept for a day", "0 and 71")
}

func TestRetentionGoesThroughAllDevices(t *testing.T) {
	g := newGateway(t)
	const devices = 1100 // more than two steps
	for part := range slices.Chunk(numbers(devices), 100) {
		arrivals := make([]iot.Arrival, len(part))
		for i, n := range part {
			arrivals[i] = g.frame(fmt.Sprint("r", n), values("temperature", n))
			arrivals[i].Frame.Identifier = fmt.Sprint("probe ", n)
		}
		g.stored(arrivals...)
	}
	all, err := g.Devices(t.Context(), 1)
	relaytest.NoError(t, err)
	for _, d := range all {
		_, err := g.ChangeSensor(t.Context(), 1, iot.SensorID(d.ID, "temperature"), iot.SensorChange{RetentionDays: new(1)})
		relaytest.NoError(t, err)
	}
	g.now = g.now.AddDate(0, 0, 2)
	relaytest.NoError(t, g.Expire(t.Context(), 1))
	for _, d := range all {
		left, err := g.Readings(t.Context(), iot.Query{Account: 1, DeviceID: d.ID}, iot.Metric)
		relaytest.NoError(t, err)
		if len(left) > 0 {
			t.Fatalf("%s has %d readings", d.Identifier, len(left))
		}
	}
}

func numbers(n int) []int {
	out := make([]int, n)
	for i := range out {
		out[i] = i
	}
	return out
}

func TestRetentionStopsWhereAStoreIsDown(t *testing.T) {
	g := newGateway(t)
	g.stored(g.frame("r1", values("temperature", 1)))
	_, err := g.ChangeSensor(t.Context(), 1, iot.SensorID(g.device(1).ID, "temperature"), iot.SensorChange{RetentionDays: new(1)})
	relaytest.NoError(t, err)
	g.now = g.now.AddDate(0, 0, 2)
	g.readings.down = fmt.Errorf("the disk is away")
	if err := g.Expire(t.Context(), 1); err == nil {
		t.Error("no error")
	}
	g.readings.down = nil
	relaytest.NoError(t, g.Expire(t.Context(), 1))
	if left := g.history(1); len(left) > 0 {
		t.Errorf("left: %q", left)
	}
}
