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

func TestReadingsAreKeptForTheRetentionOfTheirSensor(t *testing.T) {
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

// testRetention ingests a frame on each of 70 days. The temperature sensor has a retention of 30
// days, the humidity sensor has none.
func testRetention(t *testing.T, g *gateway) {
	g.mustStore(g.frame("r0", values("temperature", 0, "humidity", 0)))
	setRetention := func(days int) {
		t.Helper()
		_, err := g.ChangeSensor(t.Context(), 1, iot.SensorID(g.device(1).ID, "temperature"), iot.SensorChange{RetentionDays: new(days)})
		relaytest.NoError(t, err)
	}
	setRetention(30)
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
	expireAndWant := func(label, want string) {
		t.Helper()
		relaytest.NoError(t, g.Expire(t.Context(), 1), g.Expire(t.Context(), 2))
		if got := count(); got != want {
			t.Errorf("%s: %s, want %s", label, got, want)
		}
	}
	for day := 1; day <= 70; day++ {
		g.now = g.now.AddDate(0, 0, 1)
		g.mustStore(g.frame(fmt.Sprint("r", day), values("temperature", day, "humidity", day)))
		if day == 30 {
			expireAndWant("when the oldest reading is thirty days old", "31 and 31")
			g.now = g.now.Add(time.Nanosecond)
			expireAndWant("a nanosecond later", "30 and 31")
			g.now = g.now.Add(-time.Nanosecond)
		}
	}
	if got := count(); got != "70 and 71" {
		t.Errorf("before the retention is enforced again: %s, want 70 and 71", got)
	}
	expireAndWant("after 70 days", "31 and 71")
	if got := g.history(1)[0]; !slices.Contains([]string{"temperature=70", "humidity=70"}, got) {
		t.Errorf("the newest reading is %s", got)
	}
	setRetention(0)
	g.now = g.now.AddDate(5, 0, 0)
	expireAndWant("without a retention", "31 and 71")
	setRetention(1)
	expireAndWant("with a retention of a day", "0 and 71")
}

func TestRetentionIsEnforcedForAllDevices(t *testing.T) {
	g := newGateway(t)
	const devices = 1100 // more than two pages
	for chunk := range slices.Chunk(numbers(devices), 100) {
		arrivals := make([]iot.Arrival, len(chunk))
		for i, number := range chunk {
			arrivals[i] = g.frame(fmt.Sprint("r", number), values("temperature", number))
			arrivals[i].Frame.Identifier = fmt.Sprint("probe ", number)
		}
		g.mustStore(arrivals...)
	}
	list, err := g.Devices(t.Context(), 1)
	relaytest.NoError(t, err)
	for _, d := range list {
		_, err := g.ChangeSensor(t.Context(), 1, iot.SensorID(d.ID, "temperature"), iot.SensorChange{RetentionDays: new(1)})
		relaytest.NoError(t, err)
	}
	g.now = g.now.AddDate(0, 0, 2)
	relaytest.NoError(t, g.Expire(t.Context(), 1))
	for _, d := range list {
		remaining, err := g.Readings(t.Context(), iot.Query{Account: 1, DeviceID: d.ID}, iot.Metric)
		relaytest.NoError(t, err)
		if len(remaining) > 0 {
			t.Fatalf("%s has %d readings, want 0", d.Identifier, len(remaining))
		}
	}
}

func numbers(n int) []int {
	sequence := make([]int, n)
	for i := range sequence {
		sequence[i] = i
	}
	return sequence
}

func TestRetentionIsEnforcedAfterAnOutageOfTheStore(t *testing.T) {
	g := newGateway(t)
	g.mustStore(g.frame("r1", values("temperature", 1)))
	_, err := g.ChangeSensor(t.Context(), 1, iot.SensorID(g.device(1).ID, "temperature"), iot.SensorChange{RetentionDays: new(1)})
	relaytest.NoError(t, err)
	g.now = g.now.AddDate(0, 0, 2)
	g.readings.down = fmt.Errorf("disk unavailable")
	if err := g.Expire(t.Context(), 1); err == nil {
		t.Error("Expire returned no error, although the reading store is down")
	}
	g.readings.down = nil
	relaytest.NoError(t, g.Expire(t.Context(), 1))
	if remaining := g.history(1); len(remaining) > 0 {
		t.Errorf("history %q, want it empty", remaining)
	}
}
