package redisstore

import (
	"fmt"
	"reflect"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/penstock/penstock/relay"
	"github.com/penstock/penstock/relay/iot"
)

func deviceTakesAllWithIt(t *testing.T, s *IoT) {
	mustDo(t, s.CreateDevice(t.Context(), 1, deviceOf("d1", "tank"), []iot.Sensor{sensorOf("d1", "a")}),
		s.KeepFrames(t.Context(), 1, []iot.RawFrame{frameOf("d1", 1)}),
		s.SetLatest(t.Context(), 1, []iot.Point{pointOf("d1", "a", 0, 1)}))
	_, _, err := s.PutMarker(t.Context(), 1, "d1", iot.Marker{ID: "m"}, at(0))
	mustDo(t, err, s.DeleteDevice(t.Context(), 1, "d1"))
	keys, err := s.db.rdb.Keys(t.Context(), "*d1*").Result()
	if err != nil || len(keys) > 0 {
		t.Errorf("left: %q, %v", keys, err)
	}
	if n, err := s.CountSensors(t.Context(), 1); n != 0 || err != nil {
		t.Errorf("%d sensors are left, %v", n, err)
	}
}

// deletionOfTheFirst holds that a deletion that comes late does not take the
// identifier away from the device that has it now.
func deletionOfTheFirst(t *testing.T, s *IoT) {
	mustDo(t, s.CreateDevice(t.Context(), 1, deviceOf("d1", "tank"), nil))
	var wg sync.WaitGroup
	gone := make([]error, 8)
	for i := range gone {
		wg.Go(func() {
			gone[i] = s.DeleteDevice(t.Context(), 1, "d1")
			_ = s.CreateDevice(t.Context(), 1, deviceOf("d2", "tank"), nil) // one of eight
		})
	}
	wg.Wait()
	deleted := 0
	for _, err := range gone {
		if err == nil {
			deleted++
		} else if relay.KindOf(err) != relay.KindNotFound {
			t.Error(err)
		}
	}
	if d, err := s.DeviceByIdentifier(t.Context(), 1, "tank"); deleted != 1 || err != nil || d.ID != "d2" {
		t.Errorf("deleted %d times, then %+v, %v", deleted, d, err)
	}
}

func seriesAreCounted(t *testing.T, s *IoT) {
	want := func(n int) {
		t.Helper()
		if got, err := s.CountSensors(t.Context(), 1); got != n || err != nil {
			t.Errorf("%d sensors, want %d, %v", got, n, err)
		}
	}
	want(0)
	mustDo(t, s.CreateDevice(t.Context(), 1, deviceOf("d1", "x"), []iot.Sensor{sensorOf("d1", "a"), sensorOf("d1", "b")}))
	want(2)
	wantKind(t, s.CreateDevice(t.Context(), 1, deviceOf("d9", "x"), []iot.Sensor{sensorOf("d9", "a")}), relay.KindConflict)
	want(2)
	mustDo(t, s.AddSensors(t.Context(), 1, "d1", []iot.Sensor{sensorOf("d1", "b"), sensorOf("d1", "c")}))
	want(3)
	mustDo(t, s.AddSensors(t.Context(), 1, "gone", []iot.Sensor{sensorOf("gone", "a")}))
	want(3)
	mustDo(t, s.CreateDevice(t.Context(), 1, deviceOf("d2", "y"), []iot.Sensor{sensorOf("d2", "a")}), s.DeleteDevice(t.Context(), 1, "d1"))
	want(1)
	if n, err := s.CountSensors(t.Context(), 2); n != 0 || err != nil {
		t.Errorf("the other account has %d, %v", n, err)
	}
}

func sensorsAreRetyped(t *testing.T, s *IoT) {
	calibrated := sensorOf("d1", "a")
	calibrated.Slope = 0.1 + 0.2 // bit for bit
	mustDo(t, s.CreateDevice(t.Context(), 1, deviceOf("d1", "x"), []iot.Sensor{calibrated, sensorOf("d1", "b")}))
	for _, kind := range []string{"humidity", "humidity", "state", "humidity"} {
		mustDo(t, s.RetypeSensors(t.Context(), 1, "d1", map[string]string{"a": kind, "nobody": kind}))
	}
	calibrated.SensorTypeID, calibrated.Former = "humidity", []string{"temperature", "state"}
	got, err := s.Sensors(t.Context(), 1, "d1")
	if err != nil || !reflect.DeepEqual(got, []iot.Sensor{calibrated, sensorOf("d1", "b")}) {
		t.Errorf("%+v, %v", got, err)
	}
	mustDo(t, s.RetypeSensors(t.Context(), 2, "d1", map[string]string{"a": "theirs"}), s.RetypeSensors(t.Context(), 1, "gone", map[string]string{"a": "x"}))
	if again, err := s.Sensors(t.Context(), 1, "d1"); err != nil || !reflect.DeepEqual(again, got) {
		t.Errorf("%+v, %v", again, err)
	}
}

// retypeRace holds that nothing is lost when a sensor is calibrated while frames
// give it another type.
func retypeRace(t *testing.T, s *IoT) {
	mustDo(t, s.CreateDevice(t.Context(), 1, deviceOf("d1", "x"), []iot.Sensor{sensorOf("d1", "a")}))
	var wg sync.WaitGroup
	for i := range 8 {
		wg.Go(func() {
			_, err := s.ChangeSensor(t.Context(), 1, "d1", "a", func(x *iot.Sensor) error { x.Offset++; return nil })
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

func latestKeepsItsType(t *testing.T, s *IoT) {
	p := pointOf("d", "a", 0, 1.5)
	p.Type = "temperature"
	text := pointOf("d", "b", 0, 0)
	text.Type, text.IsText, text.Text = "state", true, "a|b"
	mustDo(t, s.CreateDevice(t.Context(), 1, deviceOf("d", "x"), nil), s.SetLatest(t.Context(), 1, []iot.Point{p, text}))
	got, err := s.Latest(t.Context(), 1, "d")
	if err != nil || len(got) != 2 || !slices.Contains(got, p) || !slices.Contains(got, text) {
		t.Errorf("%+v, %v", got, err)
	}
}

func markersAreKept(t *testing.T, s *IoT) {
	mustDo(t, s.CreateDevice(t.Context(), 1, deviceOf("d1", "x"), nil))
	for _, step := range []struct {
		what    string
		give    iot.Marker
		want    iot.Marker
		created bool
	}{
		{"a new one happened now", iot.Marker{ID: "a", Comment: "1"}, iot.Marker{ID: "a", Comment: "1", CreatedAt: at(60)}, true},
		{"the same again keeps its time", iot.Marker{ID: "a", Comment: "2"}, iot.Marker{ID: "a", Comment: "2", CreatedAt: at(60)}, false},
		{"the same again with a time gets it", iot.Marker{ID: "a", Comment: "2", CreatedAt: at(30)}, iot.Marker{ID: "a", Comment: "2", CreatedAt: at(30)}, false},
		{"a new one with a time", iot.Marker{ID: "b|{}", Comment: "3", CreatedAt: at(90)}, iot.Marker{ID: "b|{}", Comment: "3", CreatedAt: at(90)}, true},
	} {
		got, created, err := s.PutMarker(t.Context(), 1, "d1", step.give, at(60))
		if err != nil || got != step.want || created != step.created {
			t.Errorf("%s: %+v %v, %v", step.what, got, created, err)
		}
	}
	all, err := s.Markers(t.Context(), 1, "d1")
	if err != nil || len(all) != 2 || all[0].ID != "b|{}" || all[1].Comment != "2" {
		t.Errorf("%+v, %v", all, err)
	}
	theirs, err := s.Markers(t.Context(), 2, "d1")
	_, _, unknown := s.PutMarker(t.Context(), 2, "d1", iot.Marker{ID: "a"}, at(0))
	if wantKind(t, unknown, relay.KindNotFound); len(theirs) > 0 || err != nil {
		t.Errorf("%+v, %v", theirs, err)
	}
}

func markersHaveAnEnd(t *testing.T, s *IoT) {
	mustDo(t, s.CreateDevice(t.Context(), 1, deviceOf("d1", "x"), nil))
	var full []any
	for i := range iot.MaxMarkers {
		full = append(full, fmt.Sprint("m", i), encode(iot.Marker{ID: fmt.Sprint("m", i), CreatedAt: at(0)}))
	}
	mustDo(t, s.db.rdb.HSet(t.Context(), keyMarkers(1, "d1"), full...).Err())
	_, _, err := s.PutMarker(t.Context(), 1, "d1", iot.Marker{ID: "more"}, at(0))
	if wantKind(t, err, relay.KindInvalid); !strings.Contains(fmt.Sprint(relay.FieldsOf(err)), "10000 event markers, the most there may be") {
		t.Error(relay.FieldsOf(err))
	}
	if _, created, err := s.PutMarker(t.Context(), 1, "d1", iot.Marker{ID: "m7"}, at(0)); created || err != nil {
		t.Errorf("one that is there can still change: %v, %v", created, err)
	}
}

func frameOf(device string, n int) iot.RawFrame {
	return iot.RawFrame{ID: fmt.Sprintf("n1-u%d", n), DeviceID: device, ReceivedAt: at(float64(n)), Kind: "uplink", Payload: "00ff", RSSI: new(-97.5)}
}

func framesAreKept(t *testing.T, s *IoT) {
	mustDo(t, s.CreateDevice(t.Context(), 1, deviceOf("d1", "x"), nil), s.CreateDevice(t.Context(), 1, deviceOf("d2", "y"), nil))
	again := frameOf("d1", 2)
	again.Refused = "the decoder found no values"
	mustDo(t, s.KeepFrames(t.Context(), 1, nil),
		s.KeepFrames(t.Context(), 1, []iot.RawFrame{frameOf("d1", 1), frameOf("d2", 7), frameOf("d1", 2), frameOf("gone", 1)}),
		s.KeepFrames(t.Context(), 1, []iot.RawFrame{again}))
	got, err := s.Frames(t.Context(), 1, "d1", at(0))
	if err != nil || !reflect.DeepEqual(got, []iot.RawFrame{again, frameOf("d1", 1)}) {
		t.Errorf("newest first, the same record once: %+v, %v", got, err)
	}
	if got, err := s.Frames(t.Context(), 1, "d1", at(2)); err != nil || len(got) != 1 {
		t.Errorf("since a time: %+v, %v", got, err)
	}
	for _, of := range []string{"gone", "d9"} {
		if got, err := s.Frames(t.Context(), 1, of, at(0)); err != nil || len(got) > 0 {
			t.Errorf("%s: %+v, %v", of, got, err)
		}
	}
	if got, err := s.Frames(t.Context(), 2, "d1", at(0)); err != nil || len(got) > 0 {
		t.Errorf("of another account: %+v, %v", got, err)
	}
	for _, key := range []string{keyFrames(1, "d1"), keyFrameOrder(1, "d1")} {
		if ttl, err := s.db.rdb.TTL(t.Context(), key).Result(); err != nil || ttl <= iot.FrameRetention-time.Hour || ttl > iot.FrameRetention {
			t.Errorf("%s ends after %s, %v", key, ttl, err)
		}
	}
}

func framesHaveAnEnd(t *testing.T, s *IoT) {
	mustDo(t, s.CreateDevice(t.Context(), 1, deviceOf("d1", "x"), nil))
	var many []iot.RawFrame
	for i := range 3 * iot.MaxFrames {
		many = append(many, frameOf("d1", i))
	}
	mustDo(t, s.KeepFrames(t.Context(), 1, many))
	count := func() (frames, ordered int) {
		got, err := s.Frames(t.Context(), 1, "d1", time.Time{})
		n, err2 := s.db.rdb.ZCard(t.Context(), keyFrameOrder(1, "d1")).Result()
		mustDo(t, err, err2)
		if len(got) > 0 && got[0].ID != many[len(many)-1].ID {
			t.Errorf("the newest is %s", got[0].ID)
		}
		return len(got), int(n)
	}
	if frames, ordered := count(); frames != iot.MaxFrames || ordered != iot.MaxFrames {
		t.Errorf("%d frames are kept, %d in order", frames, ordered)
	}
	late := frameOf("d1", 0)
	late.ID, late.ReceivedAt = "late", at(0).Add(iot.FrameRetention+time.Duration(len(many)-2)*time.Second)
	many = append(many, late)
	mustDo(t, s.KeepFrames(t.Context(), 1, many[len(many)-1:]))
	if frames, ordered := count(); frames != 3 || ordered != 3 { // those of the last second but one, and the new one
		t.Errorf("%d frames are kept, %d in order, after the retention", frames, ordered)
	}
	mustDo(t, s.KeepFrames(t.Context(), 1, many[:5]))
	if frames, _ := count(); frames != 3 {
		t.Errorf("a replay brought back %d frames", frames-3)
	}
}

func retiredSensorsAreListed(t *testing.T, s *IoT) {
	a, b := iot.Retired{SensorID: "d1.a", RetentionDays: 7, DeletedAt: at(0)}, iot.Retired{SensorID: "d1.b", RetentionDays: 1, DeletedAt: at(1)}
	mustDo(t, s.Retire(t.Context(), 1, []iot.Retired{b, a}))
	got, err := s.Retired(t.Context(), 1)
	if err != nil || !slices.Equal(got, []iot.Retired{a, b}) {
		t.Errorf("%+v, %v", got, err)
	}
	mustDo(t, s.Unretire(t.Context(), 2, []string{"d1.a"}), s.Unretire(t.Context(), 1, []string{"d1.b", "none"}))
	if got, err := s.Retired(t.Context(), 1); err != nil || len(got) != 1 || got[0] != a {
		t.Errorf("%+v, %v", got, err)
	}
}
