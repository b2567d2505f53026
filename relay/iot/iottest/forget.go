package iottest

import (
	"fmt"
	"testing"
	"time"

	"github.com/penstock/penstock/relay"
	"github.com/penstock/penstock/relay/iot"
)

func forget(t *testing.T, s iot.ReadingStore, acct relay.AccountID, expired ...iot.ExpiredPoints) {
	t.Helper()
	if err := s.Forget(t.Context(), acct, expired); err != nil {
		t.Fatalf("Forget: %v", err)
	}
}

func forgets(t *testing.T, s iot.ReadingStore) {
	for _, device := range []string{"a", "b"} {
		for _, sensor := range []string{"1", "2", "3"} {
			write(t, s, point("old"+device, sensor, 0, 1), point("old"+device, sensor, 10, 2), point("old"+device, sensor, 20, 3))
		}
	}
	text, humidity := textOf(point("olda", "1", 5, 0), "away"), point("olda", "1", 6, 7)
	humidity.Type = "humidity"
	otherAccount := point("olda", "1", 0, 42)
	otherAccount.Account = globex
	write(t, s, text, humidity, otherAccount)

	expiry := start().Add(10 * time.Second)
	expired := []iot.ExpiredPoints{
		{DeviceID: "olda", SensorID: "olda.1", Before: expiry}, {DeviceID: "olda", SensorID: "olda.2", Before: expiry.Add(1)},
		{DeviceID: "oldb", SensorID: "oldb.3", Before: expiry.Add(time.Hour)}, {DeviceID: "gone", SensorID: "gone.1", Before: expiry},
	}
	for range 2 { // the second call finds no points
		forget(t, s, acme, expired...)
	}
	expect(t, read(t, s, iot.Query{DeviceID: "olda"}),
		point("olda", "1", 20, 3), point("olda", "2", 20, 3), point("olda", "3", 20, 3),
		point("olda", "1", 10, 2), point("olda", "3", 10, 2), point("olda", "3", 0, 1))
	expect(t, read(t, s, iot.Query{DeviceID: "oldb"}),
		point("oldb", "1", 20, 3), point("oldb", "2", 20, 3), point("oldb", "1", 10, 2), point("oldb", "2", 10, 2), point("oldb", "1", 0, 1), point("oldb", "2", 0, 1))
	expect(t, read(t, s, iot.Query{Account: globex, DeviceID: "olda"}), otherAccount)

	expiredPoint := point("olda", "1", 1, 9) // is written after its expiry
	write(t, s, expiredPoint)
	forget(t, s, acme, expired...)
	if got := read(t, s, iot.Query{DeviceID: "olda", To: expiry.Add(-1)}); len(got) != 1 {
		t.Errorf("%d readings, want one: %s", len(got), brief(got))
	}
}

func forgetsMany(t *testing.T, s iot.ReadingStore) {
	const sensors, perSensor = 40, 120 // more than a store deletes in one step
	var points []iot.Point
	var expired []iot.ExpiredPoints
	for n := range sensors {
		name := fmt.Sprint(n)
		for i := range perSensor {
			points = append(points, point("heap", name, i, 1))
		}
		expired = append(expired, iot.ExpiredPoints{DeviceID: "heap", SensorID: "heap." + name, Before: start().Add((perSensor - 1) * time.Second)})
	}
	write(t, s, points...)
	forget(t, s, acme, expired...)
	if got := read(t, s, iot.Query{DeviceID: "heap"}); len(got) != sensors {
		t.Errorf("%d readings remain, want %d", len(got), sensors)
	}
}

func forgetsHostile(t *testing.T, s iot.ReadingStore) {
	victim := point("kept", "1", 0, 42)
	write(t, s, victim)
	for _, name := range hostile() {
		p := point(name, "1", 0, 1)
		p.SensorID = name
		write(t, s, p)
		forget(t, s, acme, iot.ExpiredPoints{DeviceID: name, SensorID: name, Before: start().Add(1)})
		expect(t, read(t, s, iot.Query{DeviceID: name, Types: []string{celsius}}))
	}
	expect(t, read(t, s, iot.Query{DeviceID: "kept", Types: []string{celsius}}), victim)
}
