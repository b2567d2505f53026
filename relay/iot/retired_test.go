package iot_test

import (
	"testing"

	"github.com/penstock/penstock/relay/iot"
	"github.com/penstock/penstock/relay/relaytest"
)

func TestReadingsOfADeletedDeviceExpire(t *testing.T) {
	g := newGateway(t)
	g.mustStore(g.frame("r1", values("temperature", 1.0, "humidity", 40.0)))
	deletedID := g.device(1).ID
	_, err := g.ChangeSensor(t.Context(), 1, iot.SensorID(deletedID, "temperature"), iot.SensorChange{RetentionDays: new(30)})
	relaytest.NoError(t, err, g.DeleteDevice(t.Context(), 1, deletedID))
	g.mustStore(g.nextFrame(2, values("temperature", 2.0))) // the new device has no retention
	wantCounts := func(label string, readings, retired int) {
		t.Helper()
		relaytest.NoError(t, g.Expire(t.Context(), 1))
		points, err := g.readings.Readings(t.Context(), iot.Query{Account: 1, DeviceID: deletedID})
		list, err2 := g.records.RetiredSensors(t.Context(), 1)
		relaytest.NoError(t, err, err2)
		relaytest.Equal(t, label+": the number of readings", len(points), readings)
		relaytest.Equal(t, label+": the number of retired sensors", len(list), retired)
	}
	wantCounts("just after the deletion", 2, 1)
	g.now = g.now.AddDate(0, 0, 29)
	wantCounts("before the thirty days are over", 2, 1)
	g.now = g.now.AddDate(0, 0, 1)
	wantCounts("after thirty days", 1, 1)
	g.now = g.now.AddDate(0, 0, 2)
	wantCounts("two days later", 1, 0)
	if got := g.history(1); len(got) != 1 || got[0] != "temperature=2" {
		t.Errorf("history of the new device %q, want temperature=2", got)
	}
}

// The deletion of a device may fail after the retention of its sensors was saved.
func TestARetiredSensorOfAnExistingDeviceKeepsItsReadings(t *testing.T) {
	g := newGateway(t)
	g.mustStore(g.frame("r1", values("temperature", 1.0)))
	relaytest.NoError(t, g.records.Retire(t.Context(), 1, []iot.RetiredSensor{{SensorID: iot.SensorID(g.device(1).ID, "temperature"), RetentionDays: 1, DeletedAt: g.now}}))
	g.now = g.now.AddDate(0, 0, 10)
	relaytest.NoError(t, g.Expire(t.Context(), 1))
	if got := g.history(1); len(got) != 1 {
		t.Errorf("history %q, want one reading", got)
	}
	if retired, err := g.records.RetiredSensors(t.Context(), 1); err != nil || len(retired) != 0 {
		t.Errorf("retired sensors %v, %v; want none", retired, err)
	}
}
