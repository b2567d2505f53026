package iot

import (
	"encoding/json"
	"fmt"
	"math"
	"reflect"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/penstock/penstock/relay"
	"github.com/penstock/penstock/relay/db"
	"github.com/penstock/penstock/relay/db/dbtest"
	"github.com/penstock/penstock/relay/relaytest"
)

func rowsOfDeletedDevice(t *testing.T, s *Store) {
	relaytest.NoError(t, s.CreateDevice(t.Context(), 1, testDevice("d1", "tank"), []Sensor{testSensor("d1", "a")}),
		s.CreateDevice(t.Context(), 1, testDevice("d2", eui), []Sensor{testSensor("d2", "a")}),
		s.KeepFrames(t.Context(), 1, []RawFrame{testFrame("d1", 1)}))
	_, _, err := s.PutMarker(t.Context(), 1, "d1", Marker{ID: "m"}, dbtest.TimeAt(0))
	relaytest.NoError(t, err, s.DeleteDevice(t.Context(), 1, "d1"))
	if remaining, otherRows := rowsOf(t, s, "d1"), rowsOf(t, s, "d2"); remaining != 0 || otherRows != 2 {
		t.Errorf("%d rows remain, want 0; the other device has %d, want 2", remaining, otherRows)
	}
}

// lateDeletion checks that a second deletion of a device does not release its identifier if another
// device has that identifier now.
func lateDeletion(t *testing.T, s *Store) {
	relaytest.NoError(t, s.CreateDevice(t.Context(), 1, testDevice("d1", "tank"), nil))
	var wg sync.WaitGroup
	errs := make([]error, 8)
	for i := range errs {
		wg.Go(func() {
			errs[i] = s.DeleteDevice(t.Context(), 1, "d1")
			_ = s.CreateDevice(t.Context(), 1, testDevice("d2", "tank"), nil) // one of eight succeeds
		})
	}
	wg.Wait()
	deleted := countSuccesses(t, errs, relay.KindNotFound)
	if d, err := s.DeviceByIdentifier(t.Context(), 1, "tank"); deleted != 1 || err != nil || d.ID != "d2" {
		t.Errorf("deleted %d times, want 1; device of the identifier: %+v, %v", deleted, d, err)
	}
}

func seriesAreCounted(t *testing.T, s *Store) {
	wantCount := func(n int) {
		t.Helper()
		if got, err := s.CountSensors(t.Context(), 1); got != n || err != nil {
			t.Errorf("%d sensors, want %d; %v", got, n, err)
		}
	}
	wantCount(0)
	relaytest.NoError(t, s.CreateDevice(t.Context(), 1, testDevice("d1", "x"), []Sensor{testSensor("d1", "a"), testSensor("d1", "b")}))
	wantCount(2)
	dbtest.WantKind(t, s.CreateDevice(t.Context(), 1, testDevice("d9", "x"), []Sensor{testSensor("d9", "a")}), relay.KindConflict)
	wantCount(2)
	relaytest.NoError(t, s.AddSensors(t.Context(), 1, "d1", []Sensor{testSensor("d1", "b"), testSensor("d1", "c")}))
	wantCount(3)
	dbtest.WantKind(t, s.AddSensors(t.Context(), 1, "gone", []Sensor{testSensor("gone", "a")}), relay.KindNotFound)
	wantCount(3)
	relaytest.NoError(t, s.CreateDevice(t.Context(), 1, testDevice("d2", "y"), []Sensor{testSensor("d2", "a")}), s.DeleteDevice(t.Context(), 1, "d1"))
	wantCount(1)
	if n, err := s.CountSensors(t.Context(), 2); n != 0 || err != nil {
		t.Errorf("the other account has %d sensors, want 0; %v", n, err)
	}
}

func sensorsAreRetyped(t *testing.T, s *Store) {
	calibrated := testSensor("d1", "a")
	calibrated.Slope = 0.1 + 0.2 // not a short decimal
	relaytest.NoError(t, s.CreateDevice(t.Context(), 1, testDevice("d1", "x"), []Sensor{calibrated, testSensor("d1", "b")}))
	for _, sensorType := range []string{"humidity", "humidity", "state", "humidity"} {
		relaytest.NoError(t, s.RetypeSensors(t.Context(), 1, "d1", map[string]string{"a": sensorType, "nobody": sensorType}))
	}
	calibrated.SensorTypeID, calibrated.Former = "humidity", []string{"temperature", "state"}
	got, err := s.Sensors(t.Context(), 1, "d1")
	relaytest.NoError(t, err)
	relaytest.Equal(t, "result of Sensors", got, []Sensor{calibrated, testSensor("d1", "b")})
	relaytest.NoError(t, s.RetypeSensors(t.Context(), 2, "d1", map[string]string{"a": "theirs"}), s.RetypeSensors(t.Context(), 1, "gone", map[string]string{"a": "x"}))
	relaytest.Equal(t, "result of Sensors", relaytest.Must(s.Sensors(t.Context(), 1, "d1"))(t), got)
}

// retypeRace checks that no change is lost when a sensor is calibrated and retyped concurrently.
func retypeRace(t *testing.T, s *Store) {
	relaytest.NoError(t, s.CreateDevice(t.Context(), 1, testDevice("d1", "x"), []Sensor{testSensor("d1", "a")}))
	var wg sync.WaitGroup
	for i := range 8 {
		wg.Go(func() {
			_, err := s.ChangeSensor(t.Context(), 1, "d1", "a", func(x *Sensor) error { x.Offset++; return nil })
			if err != nil {
				t.Error(err)
			}
		})
		wg.Go(func() {
			if err := s.RetypeSensors(t.Context(), 1, "d1", map[string]string{"a": fmt.Sprint("t", i)}); err != nil {
				t.Error(err)
			}
		})
	}
	wg.Wait()
	got, err := s.Sensors(t.Context(), 1, "d1")
	if err != nil || got[0].Offset != 8 || len(got[0].Former) != 8 || slices.Contains(got[0].Former, got[0].SensorTypeID) {
		t.Errorf("%+v, %v", got, err)
	}
}

func markersAreSaved(t *testing.T, s *Store) {
	relaytest.NoError(t, s.CreateDevice(t.Context(), 1, testDevice("d1", "x"), nil))
	for _, step := range []struct {
		name    string
		marker  Marker
		want    Marker
		created bool
	}{
		{"a new marker without a time", Marker{ID: "a", Comment: "1"}, Marker{ID: "a", Comment: "1", CreatedAt: dbtest.TimeAt(60)}, true},
		{"a known marker without a time", Marker{ID: "a", Comment: "2"}, Marker{ID: "a", Comment: "2", CreatedAt: dbtest.TimeAt(60)}, false},
		{"a known marker with a time", Marker{ID: "a", Comment: "2", CreatedAt: dbtest.TimeAt(30)}, Marker{ID: "a", Comment: "2", CreatedAt: dbtest.TimeAt(30)}, false},
		{"a new marker with a time", Marker{ID: "b|{}", Comment: "3", CreatedAt: dbtest.TimeAt(90)}, Marker{ID: "b|{}", Comment: "3", CreatedAt: dbtest.TimeAt(90)}, true},
	} {
		got, created, err := s.PutMarker(t.Context(), 1, "d1", step.marker, dbtest.TimeAt(60))
		relaytest.NoError(t, err)
		relaytest.Equal(t, step.name+": result of PutMarker", got, step.want)
		relaytest.Equal(t, step.name+": result of PutMarker, created", created, step.created)
	}
	markers, err := s.Markers(t.Context(), 1, "d1")
	relaytest.NoError(t, err)
	if len(markers) != 2 {
		t.Fatalf("%d markers, want 2", len(markers))
	}
	relaytest.Equal(t, "ID of marker 0", markers[0].ID, "b|{}")
	relaytest.Equal(t, "comment of marker 1", markers[1].Comment, "2")
	otherMarkers, err := s.Markers(t.Context(), 2, "d1")
	_, _, putErr := s.PutMarker(t.Context(), 2, "d1", Marker{ID: "a"}, dbtest.TimeAt(0))
	if dbtest.WantKind(t, putErr, relay.KindNotFound); len(otherMarkers) > 0 || err != nil {
		t.Errorf("markers of another account: %+v, %v; want none", otherMarkers, err)
	}
}

func markersAreLimited(t *testing.T, s *Store) {
	relaytest.NoError(t, s.CreateDevice(t.Context(), 1, testDevice("d1", "x"), nil))
	fillMarkers(t, s, MaxMarkers)
	_, _, err := s.PutMarker(t.Context(), 1, "d1", Marker{ID: "more"}, dbtest.TimeAt(0))
	if dbtest.WantKind(t, err, relay.KindInvalid); !strings.Contains(fmt.Sprint(relay.FieldsOf(err)), "10000 event markers, the largest number allowed") {
		t.Error(relay.FieldsOf(err))
	}
	if _, created, err := s.PutMarker(t.Context(), 1, "d1", Marker{ID: "m7"}, dbtest.TimeAt(0)); created || err != nil {
		t.Errorf("change of an existing marker: created %v, %v", created, err)
	}
}

// fillMarkers adds markers to the device d1.
func fillMarkers(t *testing.T, s *Store, n int) {
	t.Helper()
	rows := db.NewBatch("id, doc")
	for i := range n {
		rows.Add(fmt.Sprint("m", i), `{"id":"m","comment":"","created_at":"2026-11-21T12:00:00Z"}`)
	}
	err := s.db.Run(t.Context(), "test", `INSERT INTO marker (account, device, id, created, doc) SELECT 1, 'd1', id, 0, doc FROM batch`, rows)
	relaytest.NoError(t, err)
}

func testFrame(device string, n int) RawFrame {
	return RawFrame{ID: fmt.Sprintf("n1-u%d", n), DeviceID: device, ReceivedAt: dbtest.TimeAt(float64(n)), Kind: "uplink", Payload: "00ff", RSSI: new(-97.5)}
}

func framesAreKept(t *testing.T, s *Store) {
	relaytest.NoError(t, s.CreateDevice(t.Context(), 1, testDevice("d1", "x"), nil), s.CreateDevice(t.Context(), 1, testDevice("d2", "y"), nil))
	repeated := testFrame("d1", 2)
	repeated.Refused = "the decoder found no values"
	relaytest.NoError(t, s.KeepFrames(t.Context(), 1, nil),
		s.KeepFrames(t.Context(), 1, []RawFrame{testFrame("d1", 1), testFrame("d2", 7), testFrame("d1", 2), testFrame("gone", 1)}),
		s.KeepFrames(t.Context(), 1, []RawFrame{repeated}))
	got, err := s.Frames(t.Context(), 1, "d1", dbtest.TimeAt(0))
	relaytest.NoError(t, err)
	relaytest.Equal(t, "frames, newest first", got, []RawFrame{repeated, testFrame("d1", 1)})
	relaytest.Equal(t, "number of frames since a time", len(relaytest.Must(s.Frames(t.Context(), 1, "d1", dbtest.TimeAt(2)))(t)), 1)
	for _, device := range []string{"gone", "d9"} {
		if got, err := s.Frames(t.Context(), 1, device, dbtest.TimeAt(0)); err != nil || len(got) > 0 {
			t.Errorf("frames of device %s: %+v, %v; want none", device, got, err)
		}
	}
	if got, err := s.Frames(t.Context(), 2, "d1", dbtest.TimeAt(0)); err != nil || len(got) > 0 {
		t.Errorf("frames of another account: %+v, %v; want none", got, err)
	}
}

func framesAreLimited(t *testing.T, s *Store) {
	relaytest.NoError(t, s.CreateDevice(t.Context(), 1, testDevice("d1", "x"), nil))
	var allFrames []RawFrame
	for i := range 3 * MaxFrames {
		allFrames = append(allFrames, testFrame("d1", i))
	}
	relaytest.NoError(t, s.KeepFrames(t.Context(), 1, allFrames))
	count := func() (frames, rows int) {
		got, err := s.Frames(t.Context(), 1, "d1", time.Time{})
		relaytest.NoError(t, err)
		if len(got) > 0 && got[0].ID != allFrames[len(allFrames)-1].ID {
			t.Errorf("the newest frame is %s", got[0].ID)
		}
		return len(got), rowsOf(t, s, "d1") - 1
	}
	if frames, rows := count(); frames != MaxFrames || rows != MaxFrames {
		t.Errorf("%d frames in %d rows, want %d", frames, rows, MaxFrames)
	}
	late := testFrame("d1", 0)
	late.ID, late.ReceivedAt = "late", dbtest.TimeAt(0).Add(FrameRetention+time.Duration(len(allFrames)-2)*time.Second)
	allFrames = append(allFrames, late)
	relaytest.NoError(t, s.KeepFrames(t.Context(), 1, allFrames[len(allFrames)-1:]))
	if frames, rows := count(); frames != 3 || rows != 3 { // the last two of the old frames and the new one
		t.Errorf("%d frames in %d rows after the retention, want 3", frames, rows)
	}
	relaytest.NoError(t, s.KeepFrames(t.Context(), 1, allFrames[:5]))
	if frames, _ := count(); frames != 3 {
		t.Errorf("a replay restored %d expired frames", frames-3)
	}
}

func retiredSensorsAreListed(t *testing.T, s *Store) {
	a, b := RetiredSensor{SensorID: "d1.a", RetentionDays: 7, DeletedAt: dbtest.TimeAt(0)}, RetiredSensor{SensorID: "d1.b", RetentionDays: 1, DeletedAt: dbtest.TimeAt(1)}
	relaytest.NoError(t, s.Retire(t.Context(), 1, []RetiredSensor{b, a}))
	got, err := s.RetiredSensors(t.Context(), 1)
	relaytest.NoError(t, err)
	relaytest.Equal(t, "result of Retired", got, []RetiredSensor{a, b})
	relaytest.NoError(t, s.Unretire(t.Context(), 2, []string{"d1.a"}), s.Unretire(t.Context(), 1, []string{"d1.b", "none"}))
	if got, err := s.RetiredSensors(t.Context(), 1); err != nil {
		t.Error(err)
	} else if len(got) != 1 {
		t.Errorf("%d retired sensors, want 1", len(got))
	} else {
		relaytest.Equal(t, "retired sensor", got[0], a)
	}
}

// framesAreSwept checks that old frames of a device that sends no frames are deleted, too.
func framesAreSwept(t *testing.T, s *Store) {
	relaytest.NoError(t, s.CreateDevice(t.Context(), 1, testDevice("d1", "x"), nil), s.CreateDevice(t.Context(), 2, testDevice("d2", "x"), nil),
		s.KeepFrames(t.Context(), 1, []RawFrame{testFrame("d1", 1), testFrame("d1", 2)}), s.KeepFrames(t.Context(), 2, []RawFrame{testFrame("d2", 9)}))
	for _, step := range []struct {
		age  float64 // seconds beyond the retention
		want [2]int
	}{{1, [2]int{2, 1}}, {2, [2]int{1, 1}}, {2, [2]int{1, 1}}, {5, [2]int{0, 1}}, {10, [2]int{0, 0}}} {
		relaytest.NoError(t, s.Sweep(t.Context(), dbtest.TimeAt(step.age).Add(FrameRetention)))
		if got := [2]int{rowsOf(t, s, "d1") - 1, rowsOf(t, s, "d2") - 1}; got != step.want {
			t.Errorf("%g s after the retention: remaining frames = %v, want %v", step.age, got, step.want)
		}
	}
}

// manyFramesAreSwept sweeps more frames than one transaction deletes.
func manyFramesAreSwept(t *testing.T, s *Store) {
	rows := db.NewBatch("id")
	for i := range 2*maxSwept + 1 {
		rows.Add(fmt.Sprint(i))
	}
	err := s.db.Run(t.Context(), "test", `INSERT INTO raw_frame (account, device, id, received, doc) SELECT 1, 'd1', id, 1, '' FROM batch`, rows)
	relaytest.NoError(t, err, s.Sweep(t.Context(), dbtest.TimeAt(0)))
	if n := rowsOf(t, s, "d1"); n != 0 {
		t.Errorf("%d rows remain, want 0", n)
	}
}

// changesAreRepeatable checks that a change can be repeated if its response was lost.
func changesAreRepeatable(t *testing.T, s *Store) {
	sensors := []Sensor{testSensor("d1", "a")}
	relaytest.NoError(t, s.CreateDevice(t.Context(), 1, testDevice("d1", eui), sensors))
	dbtest.WantKind(t, s.CreateDevice(t.Context(), 1, testDevice("d1", eui), sensors), relay.KindConflict)
	dbtest.WantKind(t, s.CreateDevice(t.Context(), 1, testDevice("d1", "other"), sensors), relay.KindConflict)
	for range 2 {
		_, _, err := s.PutMarker(t.Context(), 1, "d1", Marker{ID: "m"}, dbtest.TimeAt(0))
		_, err2 := s.ChangeDevice(t.Context(), 1, "d1", func(d *Device) error { d.Name = "new"; return nil })
		relaytest.NoError(t, err, err2, s.AddSensors(t.Context(), 1, "d1", sensors), s.AddSensors(t.Context(), 1, "d1", nil),
			s.KeepFrames(t.Context(), 1, []RawFrame{testFrame("d1", 1), testFrame("d1", 1)}),
			s.RetypeSensors(t.Context(), 1, "d1", map[string]string{"a": "state"}), s.RetypeSensors(t.Context(), 1, "d1", nil),
			s.Retire(t.Context(), 1, []RetiredSensor{{SensorID: "d1.a"}, {SensorID: "d1.a"}}), s.Retire(t.Context(), 1, nil), s.Unretire(t.Context(), 1, nil))
	}
	if n := rowsOf(t, s, "d1"); n != 4 { // the device, a sensor, a marker and a frame
		t.Errorf("%d rows, want 4", n)
	}
	if versions, err := s.Versions(t.Context(), []relay.AccountID{1}); err != nil || versions[1].Records != 1<<20 {
		t.Errorf("versions %v, %v; want one change", versions, err)
	}
	relaytest.Equal(t, "number of retired sensors", len(relaytest.Must(s.RetiredSensors(t.Context(), 1))(t)), 1)
}

// recordsAreExact checks that records are read as they were written, with any texts and numbers.
func recordsAreExact(t *testing.T, s *Store) {
	device, sensor := testDevice("d1", "a\x00b <é> ' \U0001F4A7"), testSensor("d1", "k\x00 {for update} $1")
	sensor.Slope, sensor.Offset, sensor.Name = math.SmallestNonzeroFloat64, -0.1-0.2, "<a&b>\x00"
	sensor.CreatedAt = dbtest.TimeAt(0).Add(1)
	device.Longitude, device.Altitude, device.Parameters = new(math.Nextafter(1, 2)), new(math.Copysign(0, -1)), `{"a":"\u0000"}`
	relaytest.NoError(t, s.CreateDevice(t.Context(), 1, device, []Sensor{sensor}))
	got, err := s.Load(t.Context(), 1, []string{"none", device.Identifier})
	known := got[device.Identifier]
	if err != nil || !reflect.DeepEqual(known, DeviceWithSensors{Device: device, Sensors: []Sensor{sensor}}) || !math.Signbit(*known.Device.Altitude) {
		t.Errorf("%+v, %v", got, err)
	}
	changed, err := s.ChangeSensor(t.Context(), 1, "d1", sensor.Key, func(x *Sensor) error { x.Slope *= 3; return nil })
	relaytest.NoError(t, err)
	relaytest.Equal(t, "slope of the changed sensor", changed.Slope, 3*sensor.Slope)
	frame := testFrame("d1", 1)
	frame.Object = json.RawMessage(`{"a":"<>\u0000","b":1e400}`)
	relaytest.NoError(t, s.KeepFrames(t.Context(), 1, []RawFrame{frame}))
	relaytest.Equal(t, "frames", relaytest.Must(s.Frames(t.Context(), 1, "d1", dbtest.TimeAt(0)))(t), []RawFrame{frame})
}

// manyAreLoaded loads hundreds of devices and checks that each has its own sensors in order.
func manyAreLoaded(t *testing.T, s *Store) {
	var names []string
	for i := range 300 {
		id := fmt.Sprint("d", i)
		names = append(names, "tank "+id, "none "+id)
		relaytest.NoError(t, s.CreateDevice(t.Context(), relay.AccountID(1+i%2), testDevice(id, "tank "+id), []Sensor{testSensor(id, "b"), testSensor(id, "a")}))
	}
	got, err := s.Load(t.Context(), 1, append(names, names...))
	if err != nil || len(got) != 150 {
		t.Fatalf("%d devices, %v", len(got), err)
	}
	for name, k := range got {
		if k.Device.Identifier != name || len(k.Sensors) != 2 || k.Sensors[0].Key != "a" || k.Sensors[1].DeviceID != k.Device.ID {
			t.Errorf("%s: %+v", name, k)
		}
	}
}
