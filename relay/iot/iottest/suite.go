package iottest

import (
	"context"
	"fmt"
	"math"
	"testing"
	"time"

	"github.com/penstock/penstock/relay"
	"github.com/penstock/penstock/relay/iot"
	"github.com/penstock/penstock/relay/relaytest"
)

// The accounts of the suite. Several cases may use the same store, so each case has its own device.
const (
	acme    relay.AccountID = 1
	globex  relay.AccountID = 2
	celsius                 = "temperature"
)

// start is the time of the first reading. It has nanoseconds on purpose.
func start() time.Time { return time.Date(2026, 3, 1, 12, 0, 0, 123456789, time.UTC) }

// Run runs the suite. open returns an empty store, which it closes after the test.
func Run(t *testing.T, open func(t *testing.T) iot.ReadingStore) {
	cases := []struct {
		name string
		run  func(*testing.T, iot.ReadingStore)
	}{
		{"readings are read newest first", newestFirst},
		{"readings of the same time are in the order of sensor ids", sameTime},
		{"a limit may separate readings of the same time", limitWithinTime},
		{"a point overwrites an earlier point of the same sensor and time", overwrites},
		{"the last of several points of a sensor and time in a batch is stored", lastOfBatchWins},
		{"texts and numbers are stored and distinguished", texts},
		{"a number replaces a text", numberOverText},
		{"a text replaces a number, and no other point", textOverNumber},
		{"texts that replace numbers do not change points between them", textsOverNumbers},
		{"the last number or text of a sensor and time in a batch is stored", lastKindOfBatchWins},
		{"floats are read exactly as they were written", floats},
		{"names and tags may have any characters", hostileTags},
		{"a query quotes device ids and types", hostileQueries},
		{"the ends of a range are inclusive", ranges},
		{"a limit is at most 1000", limits},
		{"a query selects the requested types, or all types", types},
		{"accounts may have devices with the same id", accounts},
		{"an unknown device has no readings", unknownDevice},
		{"invalid points and radio data are refused by index, and valid points are stored", refusals},
		{"an empty batch is valid", emptyBatch},
		{"a batch of 12,000 points is stored completely", bigBatch},
		{"radio data may lack any value", radioData},
		{"each statistic is computed", statistics},
		{"a bucket includes its start, and the ends of a range are inclusive", boundaries},
		{"weeks begin on Monday, months on the first day, and other buckets are counted from 1970", calendarBuckets},
		{"aggregates ignore texts", textsIgnored},
		{"rows of an aggregate are ordered and limited", rowsInOrder},
		{"an average of the largest numbers is finite", largeSums},
		{"an aggregate quotes device ids and types", hostileAggregates},
		{"aggregates of 500 random readings are exact for each statistic and granularity", randomReadings},
		{"Forget deletes only points before the time of their sensor", forgets},
		{"Forget deletes thousands of points", forgetsMany},
		{"Forget quotes device and sensor ids", forgetsHostile},
		{"the latest point of a sensor is the newest, not the last written", latestIsNewest},
		{"Latest returns the newest points of sensors with readings days apart in any order", latestOfDays},
		{"Latest returns points of sensors that stopped, changed their type or have texts", latestOfAll},
		{"a sensor without points has no latest point", latestForgotten},
		{"Latest and LastStored quote device ids", latestHostile},
		{"LastStored returns the time of the newest point or uplink", lastStored},
		{"LastStored of 600 devices", lastStoredMany},
		{"each value of radio data comes from the newest uplink that has it", radioOfLast},
		{"a cancelled context is an error", cancelled},
		{"Ping succeeds for a writable store", ping},
	}
	for _, tc := range cases {
		t.Run(tc.name, func(t *testing.T) { tc.run(t, open(t)) })
	}
}

// point returns a reading of a device's sensor, a number of seconds after start.
func point(device, sensor string, seconds int, value float64) iot.Point {
	return iot.Point{
		Account: acme, Type: celsius, DeviceID: device, Identifier: "24e124136b502217",
		SensorID: device + "." + sensor, Key: "key_" + sensor,
		Time: start().Add(time.Duration(seconds) * time.Second), Value: value,
	}
}

// textOf returns a copy of a point with a text as its value.
func textOf(p iot.Point, text string) iot.Point {
	p.Value, p.Text, p.IsText = 0, text, true
	return p
}

func write(t *testing.T, s iot.ReadingStore, points ...iot.Point) {
	t.Helper()
	writeBatch(t, s, iot.Readings{Points: points})
}

func writeBatch(t *testing.T, s iot.ReadingStore, readings iot.Readings) {
	t.Helper()
	refused, err := s.Write(t.Context(), readings)
	if err != nil || len(refused) > 0 {
		t.Fatalf("Write: refused %v, error %v", refused, err)
	}
}

func read(t *testing.T, s iot.ReadingStore, q iot.Query) []iot.Point {
	t.Helper()
	if q.Account == 0 {
		q.Account = acme
	}
	points, err := s.Readings(t.Context(), q)
	if err != nil {
		t.Fatalf("Readings: %v", err)
	}
	return points
}

// expect compares points. Times are compared as instants, and must be in UTC.
func expect(t *testing.T, got []iot.Point, want ...iot.Point) {
	t.Helper()
	if len(got) != len(want) {
		t.Fatalf("%d readings, want %d\n got %s\nwant %s", len(got), len(want), brief(got), brief(want))
	}
	for i := range want {
		if !got[i].Time.Equal(want[i].Time) || got[i].Time.Location() != time.UTC {
			t.Errorf("reading %d: time %v, want %v in UTC", i, got[i].Time, want[i].Time)
		}
		g, w := got[i], want[i]
		g.Time, w.Time = time.Time{}, time.Time{}
		if g != w {
			t.Errorf("reading %d:\n got %+q\nwant %+q", i, fmt.Sprint(g), fmt.Sprint(w))
		}
	}
}

func brief(points []iot.Point) string {
	s := ""
	for _, p := range points[:min(len(points), 10)] {
		s += fmt.Sprintf("[%s %s %v %q]", p.SensorID, p.Time.Format("15:04:05.999999999"), p.Value, p.Text)
	}
	return s
}

func emptyBatch(t *testing.T, s iot.ReadingStore) {
	write(t, s)
}

func unknownDevice(t *testing.T, s iot.ReadingStore) {
	expect(t, read(t, s, iot.Query{DeviceID: "nobody", Types: []string{celsius}}))
}

func ping(t *testing.T, s iot.ReadingStore) {
	relaytest.NoError(t, s.Ping(t.Context()))
}

func cancelled(t *testing.T, s iot.ReadingStore) {
	write(t, s, point("gone", "1", 0, 1))
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := s.Write(ctx, iot.Readings{Points: []iot.Point{point("gone", "1", 1, 2)}}); err == nil {
		t.Error("Write: no error")
	}
	if _, err := s.Readings(ctx, iot.Query{Account: acme, DeviceID: "gone", Types: []string{celsius}}); err == nil {
		t.Error("Readings: no error")
	}
	if _, err := s.Aggregate(ctx, iot.AggregateQuery{Query: iot.Query{Account: acme, DeviceID: "gone"}, Statistic: iot.First, Granularity: iot.Day}); err == nil {
		t.Error("Aggregate: no error")
	}
	if err := s.Forget(ctx, acme, []iot.ExpiredPoints{{DeviceID: "gone", SensorID: "gone.1", Before: start().Add(time.Hour)}}); err == nil {
		t.Error("Forget: no error")
	}
	if _, err := s.Latest(ctx, acme, "gone", []string{celsius}); err == nil {
		t.Error("Latest: no error")
	}
	if _, err := s.LastStored(ctx, acme, []string{"gone"}); err == nil {
		t.Error("LastStored: no error")
	}
	if err := s.Ping(ctx); err == nil {
		t.Error("Ping: no error")
	}
	expect(t, read(t, s, iot.Query{DeviceID: "gone", Types: []string{celsius}}), point("gone", "1", 0, 1))
}

func refusals(t *testing.T, s iot.ReadingStore) {
	validPoints := []iot.Point{point("picky", "1", 0, 1), point("picky", "1", 1, 2), point("picky", "1", 2, 3)}
	invalidPoints := []iot.Point{point("picky", "2", 0, math.NaN()), point("picky", "2", 1, math.Inf(-1)), point("picky", "2", 2, 0), point("picky", "2", 3, 1)}
	invalidPoints[2].Time = time.Date(9999, 1, 1, 0, 0, 0, 0, time.UTC)
	invalidPoints[3].Type = ""
	nan := math.NaN()
	refused, err := s.Write(t.Context(), iot.Readings{
		Points: []iot.Point{validPoints[0], invalidPoints[0], invalidPoints[1], validPoints[1], invalidPoints[2], invalidPoints[3], validPoints[2]},
		Radio:  []iot.RadioData{{Account: acme, DeviceID: "picky", Time: start(), SNR: &nan}},
	})
	relaytest.NoError(t, err)
	want := map[[2]int]bool{{1, -1}: true, {2, -1}: true, {4, -1}: true, {5, -1}: true, {-1, 0}: true}
	for _, r := range refused {
		if !want[[2]int{r.Point, r.Radio}] || r.Reason == "" {
			t.Errorf("refused point %d and radio data %d with the reason %q, want an invalid point or radio data and a reason", r.Point, r.Radio, r.Reason)
		}
		delete(want, [2]int{r.Point, r.Radio})
	}
	if len(want) > 0 {
		t.Errorf("points and radio data that were not refused: %v, want none", want)
	}
	expect(t, read(t, s, iot.Query{DeviceID: "picky", Types: []string{celsius}}), validPoints[2], validPoints[1], validPoints[0])
}

func bigBatch(t *testing.T, s iot.ReadingStore) {
	const devices, perDevice = 30, 400
	var points []iot.Point
	for i := range perDevice {
		for d := range devices {
			points = append(points, point(fmt.Sprintf("big%d", d), "1", i, float64(d*perDevice+i)))
		}
	}
	write(t, s, points...)
	for d := range devices {
		got := read(t, s, iot.Query{DeviceID: fmt.Sprintf("big%d", d), Types: []string{celsius}})
		if len(got) != perDevice || got[0].Value != float64(d*perDevice+perDevice-1) || got[perDevice-1].Value != float64(d*perDevice) {
			t.Fatalf("device %d: %d readings, want %d", d, len(got), perDevice)
		}
	}
}

func radioData(t *testing.T, s iot.ReadingStore) {
	count, port, rssi, snr, battery := int64(17), int64(85), -97.0, 8.5, 93.0
	writeBatch(t, s, iot.Readings{Radio: []iot.RadioData{
		{Account: acme, DeviceID: "radio", Identifier: "a b", Time: start(), FCnt: &count, FPort: &port, RSSI: &rssi, SNR: &snr, Gateways: &count, Battery: &battery},
		{Account: acme, DeviceID: "radio", Identifier: "a b", Time: start(), RSSI: &snr, Margin: &snr, Latitude: &battery, Longitude: &rssi},
		{Account: acme, DeviceID: "radio", Time: start().Add(1), RSSI: &rssi},
		{Account: acme, DeviceID: "radio", Time: start().Add(2)},
	}})
	expect(t, read(t, s, iot.Query{DeviceID: "radio"}))
}
