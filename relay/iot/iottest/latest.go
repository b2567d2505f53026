package iottest

import (
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/penstock/penstock/relay"
	"github.com/penstock/penstock/relay/iot"
)

func latest(t *testing.T, s iot.ReadingStore, acct relay.AccountID, device string, types ...string) []iot.Point {
	t.Helper()
	points, err := s.Latest(t.Context(), acct, device, types)
	if err != nil {
		t.Fatalf("Latest: %v", err)
	}
	return points
}

func latestIsNewest(t *testing.T, s iot.ReadingStore) {
	a, b, otherDevice := point("newest", "1", 20, 2), point("newest", "2", 5, 7), point("newest2", "1", 99, 9)
	write(t, s, point("newest", "1", 10, 1), a, point("newest", "1", 15, 3), b, otherDevice)
	write(t, s, point("newest", "1", 12, 4))
	expect(t, latest(t, s, acme, "newest", celsius), a, b)
	corrected := a
	corrected.Value = 8
	write(t, s, corrected)
	expect(t, latest(t, s, acme, "newest", celsius), corrected, b)
	expect(t, latest(t, s, globex, "newest", celsius))
	expect(t, latest(t, s, acme, "nobody", celsius))
}

// latestOfDays checks that the latest points depend neither on the days between readings nor on the
// order in which the readings were written.
func latestOfDays(t *testing.T, s iot.ReadingStore) {
	const day = 24 * 60 * 60
	newest := point("days", "1", 5*day-1, 5)
	for _, seconds := range []int{2 * day, 0, 2*day + day/2, 4 * day, 3 * day, 5*day - 1, day, 4*day + 5} {
		write(t, s, point("days", "1", seconds, float64(seconds)), point("days", "2", 5*day-seconds, 1))
	}
	write(t, s, newest)
	expect(t, latest(t, s, acme, "days", celsius), newest, point("days", "2", 5*day, 1))
}

func latestOfAll(t *testing.T, s iot.ReadingStore) {
	stopped, textPoint := point("mixed", "1", 0, 1), textOf(point("mixed", "2", 1500, 0), "open")
	oldType, newType := point("mixed", "3", 1, 3), point("mixed", "3", 1600, 4)
	newType.Type = "humidity"
	points := []iot.Point{stopped, textPoint, oldType, newType}
	for i := range 1200 {
		points = append(points, point("mixed", "4", 10+i, float64(i)))
	}
	write(t, s, points...)
	expect(t, latest(t, s, acme, "mixed", "humidity", celsius), stopped, textPoint, newType, points[len(points)-1])
	// A replay stores readings again under another type.
	replayed := newType
	replayed.Type, replayed.Value = celsius, 5
	write(t, s, replayed)
	if !slices.ContainsFunc(latest(t, s, acme, "mixed", "humidity", celsius), func(p iot.Point) bool {
		return p.Time.Equal(replayed.Time) && p.Type == replayed.Type && p.Value == 5
	}) {
		t.Error("the point of the other type is missing")
	}
}

func latestForgotten(t *testing.T, s iot.ReadingStore) {
	write(t, s, point("bare", "1", 0, 1), point("bare", "1", 1, 1), point("bare", "2", 5, 2))
	forget(t, s, acme, iot.ExpiredPoints{DeviceID: "bare", SensorID: "bare.1", Before: start().Add(time.Minute)})
	expect(t, latest(t, s, acme, "bare", celsius), point("bare", "2", 5, 2))
	write(t, s, point("bare", "1", 120, 3))
	expect(t, latest(t, s, acme, "bare", celsius), point("bare", "1", 120, 3), point("bare", "2", 5, 2))
}

func latestHostile(t *testing.T, s iot.ReadingStore) {
	for i, name := range hostile() {
		p := point(name, "1", i, float64(i))
		p.Type, p.SensorID = name, name
		write(t, s, p)
		expect(t, latest(t, s, acme, name, name, celsius), p)
		if got := lastStoredTimes(t, s, acme, name, "victim"); len(got) != 1 || !got[name].Equal(p.Time) {
			t.Errorf("device %q: last stored times %v, want that of one point", name, got)
		}
	}
}

func lastStoredTimes(t *testing.T, s iot.ReadingStore, acct relay.AccountID, devices ...string) map[string]time.Time {
	t.Helper()
	times, err := s.LastStored(t.Context(), acct, devices)
	if err != nil {
		t.Fatalf("LastStored: %v", err)
	}
	return times
}

func lastStored(t *testing.T, s iot.ReadingStore) {
	rssi := -97.0
	textPoint := textOf(point("spoke", "2", 30, 0), "open")
	textPoint.Type = "state"
	writeBatch(t, s, iot.Readings{
		Points: []iot.Point{point("spoke", "1", 10, 1), textPoint, point("spoke", "1", 20, 1), point("heard", "1", 40, 1)},
		Radio: []iot.RadioData{
			{Account: acme, DeviceID: "spoke", Time: start(), RSSI: &rssi},
			{Account: acme, DeviceID: "heard", Time: start().Add(50 * time.Second), SNR: &rssi},
			{Account: acme, DeviceID: "radio only", Time: start().Add(60 * time.Second), Battery: &rssi},
		},
	})
	got := lastStoredTimes(t, s, acme, "spoke", "heard", "radio only", "silent")
	want := map[string]time.Duration{"spoke": 30 * time.Second, "heard": 50 * time.Second, "radio only": time.Minute}
	if len(got) != len(want) {
		t.Errorf("last stored times %v, want 3 devices", got)
	}
	for device, elapsed := range want {
		if storedAt := got[device]; !storedAt.Equal(start().Add(elapsed)) || storedAt.Location() != time.UTC {
			t.Errorf("device %s: last stored %s, want %s", device, storedAt, start().Add(elapsed))
		}
	}
	if got := lastStoredTimes(t, s, globex, "spoke"); len(got) != 0 {
		t.Errorf("last stored times of another account: %v, want none", got)
	}
	if got := lastStoredTimes(t, s, acme); len(got) != 0 {
		t.Errorf("last stored times of no devices: %v, want none", got)
	}
}

func lastStoredMany(t *testing.T, s iot.ReadingStore) {
	var points []iot.Point
	var devices []string
	for i := range 600 {
		p := point(fmt.Sprint("fleet", i), "1", i, 1)
		points, devices = append(points, p), append(devices, p.DeviceID)
	}
	write(t, s, append(points, point("apart", "1", 0, 1))...)
	got := lastStoredTimes(t, s, acme, devices...)
	if len(got) != 600 {
		t.Fatalf("%d devices, want 600", len(got))
	}
	for _, p := range points {
		if !got[p.DeviceID].Equal(p.Time) {
			t.Fatalf("device %s: last stored %s, want %s", p.DeviceID, got[p.DeviceID], p.Time)
		}
	}
}
