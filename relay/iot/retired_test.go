package iot_test

import (
	"testing"

	"github.com/penstock/penstock/relay/iot"
	"github.com/penstock/penstock/relay/relaytest"
)

func TestReadingsOfADeletedDeviceStillHaveTheirEnd(t *testing.T) {
	g := newGateway(t)
	g.stored(g.frame("r1", values("temperature", 1.0, "humidity", 40.0)))
	old := g.device(1).ID
	_, err := g.ChangeSensor(t.Context(), 1, iot.SensorID(old, "temperature"), iot.SensorChange{RetentionDays: new(30)})
	relaytest.NoError(t, err, g.DeleteDevice(t.Context(), 1, old))
	g.stored(g.later(2, values("temperature", 2.0))) // it comes back, and keeps for good
	is := func(when string, left, retired int) {
		t.Helper()
		relaytest.NoError(t, g.Expire(t.Context(), 1))
		points, err := g.readings.Readings(t.Context(), iot.Query{Account: 1, DeviceID: old})
		list, err2 := g.records.Retired(t.Context(), 1)
		relaytest.NoError(t, err, err2)
		relaytest.Equal(t, when+": the number of readings", len(points), left)
		relaytest.Equal(t, when+": the number of retired devices", len(list), retired)
	}
	is("at once", 2, 1)
	g.now = g.now.AddDate(0, 0, 29)
	is("before the thirty days are over", 2, 1)
	g.now = g.now.AddDate(0, 0, 1)
	is("after thirty days", 1, 1)
	g.now = g.now.AddDate(0, 0, 2)
	is("when nothing can be left", 1, 0)
	if got := g.history(1); len(got) != 1 || got[0] != "temperature=2" {
		t.Errorf("the device that came after: %q", got)
	}
}

// A deletion may fail after the retention of the sensors was saved.
func TestADeviceThatIsThereAfterAllSpeaksForItself(t *testing.T) {
	g := newGateway(t)
	g.stored(g.frame("r1", values("temperature", 1.0)))
	relaytest.NoError(t, g.records.Retire(t.Context(), 1, []iot.Retired{{SensorID: iot.SensorID(g.device(1).ID, "temperature"), RetentionDays: 1, DeletedAt: g.now}}))
	g.now = g.now.AddDate(0, 0, 10)
	relaytest.NoError(t, g.Expire(t.Context(), 1))
	if got := g.history(1); len(got) != 1 {
		t.Errorf("%q", got)
	}
	if left, err := g.records.Retired(t.Context(), 1); err != nil || len(left) != 0 {
		t.Errorf("%v, %v", left, err)
	}
}
