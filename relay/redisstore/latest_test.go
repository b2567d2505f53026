package redisstore

import (
	"context"
	"fmt"
	"reflect"
	"slices"
	"testing"
	"time"

	"github.com/penstock/penstock/relay"
	"github.com/penstock/penstock/relay/account"
	"github.com/penstock/penstock/relay/iot"
)

func pointOf(device, key string, seconds, value float64) iot.Point {
	return iot.Point{Account: 1, DeviceID: device, SensorID: iot.SensorID(device, key), Time: at(seconds), Value: value}
}

// Latest reads latest values whether the device is there or not.
func (s *IoT) Latest(ctx context.Context, acct account.ID, deviceID string) ([]iot.Point, error) {
	all, err := s.db.rdb.HGetAll(ctx, keyLatest(acct, deviceID)).Result()
	if err != nil {
		return nil, err
	}
	return latestFrom(acct, deviceID, all)
}

func overviews(t *testing.T, s *IoT) {
	sensor := iot.Sensor{ID: iot.SensorID("d", "a"), DeviceID: "d", Key: "a", Slope: 2, RetentionDays: 3, SensorTypeID: "t"}
	if _, err := s.Overview(t.Context(), 1, "d"); relay.KindOf(err) != relay.KindNotFound {
		t.Fatalf("a device that is not there: %v", err)
	}
	mustDo(t, s.CreateDevice(t.Context(), 1, deviceOf("d", eui), []iot.Sensor{sensor}), s.SetLatest(t.Context(), 1, []iot.Point{pointOf("d", "a", 10, 1)}))
	before, err := s.Overview(t.Context(), 1, "d")
	mustDo(t, err, s.PutSensorType(t.Context(), iot.SensorType{ID: "t"}))
	after, err := s.Overview(t.Context(), 1, "d")
	if err != nil || after.TypesVersion == before.TypesVersion {
		t.Errorf("a new sensor type left version %d: %v", after.TypesVersion, err)
	}
	if len(after.Sensors) != 1 || !reflect.DeepEqual(after.Sensors[0], sensor) || len(after.Latest) != 1 || after.Latest[0] != pointOf("d", "a", 10, 1) {
		t.Errorf("%+v", after)
	}
	if _, err := s.Overview(t.Context(), 2, "d"); relay.KindOf(err) != relay.KindNotFound {
		t.Errorf("another account's device: %v", err)
	}
}

func latestGoesForward(t *testing.T, s *IoT) {
	mustDo(t, s.CreateDevice(t.Context(), 1, deviceOf("d", eui), nil))
	for _, step := range []struct {
		what string
		give []iot.Point
		want float64
	}{
		{"the first", []iot.Point{pointOf("d", "a", 10, 1)}, 1},
		{"a newer one", []iot.Point{pointOf("d", "a", 20, 2)}, 2},
		{"an older one changes nothing", []iot.Point{pointOf("d", "a", 15, 3)}, 2},
		{"one a nanosecond older changes nothing", []iot.Point{{DeviceID: "d", SensorID: iot.SensorID("d", "a"), Time: at(20).Add(-1), Value: 4}}, 2},
		{"the same time again overwrites", []iot.Point{pointOf("d", "a", 20, 5)}, 5},
		{"the newest of a batch counts", []iot.Point{pointOf("d", "a", 40, 7), pointOf("d", "a", 30, 6)}, 7},
		{"of equal times the last of a batch counts", []iot.Point{pointOf("d", "a", 50, 8), pointOf("d", "a", 50, 9)}, 9},
		{"nothing changes nothing", nil, 9},
	} {
		mustDo(t, s.SetLatest(t.Context(), 1, step.give))
		got, err := s.Latest(t.Context(), 1, "d")
		if err != nil || len(got) != 1 || got[0].Value != step.want {
			t.Fatalf("%s: %+v, %v", step.what, got, err)
		}
	}
}

func latestOfMany(t *testing.T, s *IoT) {
	var points []iot.Point
	for i := range 1500 { // more than one script's worth
		id := fmt.Sprintf("d%04d", i)
		mustDo(t, s.CreateDevice(t.Context(), 1, deviceOf(id, id), nil))
		text := pointOf(id, "b", 0.000000001, 0)
		text.IsText, text.Text = true, fmt.Sprint("é|", i)
		points = append(points, pointOf(id, "a", float64(i), float64(i)/3), text)
	}
	mustDo(t, s.SetLatest(t.Context(), 1, points))
	for i := range 1500 {
		id := fmt.Sprintf("d%04d", i)
		got, err := s.Latest(t.Context(), 1, id)
		want := points[2*i : 2*i+2]
		slices.SortFunc(want, func(a, b iot.Point) int { return slices.Compare([]byte(a.SensorID), []byte(b.SensorID)) })
		if err != nil || !slices.Equal(got, want) {
			t.Fatalf("%s:\n%+v\n%+v, %v", id, got, want, err)
		}
	}
}

func TestLatestEntriesSortByTime(t *testing.T) {
	early, late := iot.Point{Time: time.Unix(9, 0), Value: 9}, iot.Point{Time: time.Unix(10, 0), Value: 1}
	if a, b := latestEntry(&early), latestEntry(&late); a >= b {
		t.Errorf("%q is not before %q", a, b)
	}
	for _, bad := range []string{"", "1|n", "x|n|1", "1|n|one", "|||"} {
		if p, err := latestPoint(bad); err == nil {
			t.Errorf("%q was read as %+v", bad, p)
		}
	}
}

func typesAndLocations(t *testing.T, s *IoT) {
	mustDo(t, s.PutSensorType(t.Context(), iot.SensorType{ID: "temperature", Name: "Temperature", ImperialSlope: 1.8}),
		s.PutSensorType(t.Context(), iot.SensorType{ID: "gone"}), s.DeleteSensorType(t.Context(), "gone"),
		s.PutLocation(t.Context(), 1, iot.Location{ID: "b", Name: "B", Imported: true}), s.PutLocation(t.Context(), 1, iot.Location{ID: "a"}),
		s.PutLocation(t.Context(), 1, iot.Location{ID: "gone"}), s.DeleteLocation(t.Context(), 1, "gone"),
		s.CreateDecoder(t.Context(), 1, iot.Decoder{ID: "gone"}), s.DeleteDecoder(t.Context(), 1, "gone"))
	types, err := s.SensorTypes(t.Context())
	if err != nil || len(types) != 1 || types["temperature"].ImperialSlope != 1.8 {
		t.Errorf("%+v, %v", types, err)
	}
	locations, err := s.Locations(t.Context(), 1)
	if err != nil || len(locations) != 2 || locations[0].ID != "a" || !locations[1].Imported {
		t.Errorf("%+v, %v", locations, err)
	}
	if decoders, err := s.Decoders(t.Context(), 1); err != nil || len(decoders) != 0 {
		t.Errorf("%+v, %v", decoders, err)
	}
}
