package redisstore

import (
	"fmt"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/penstock/penstock/decoders"
	"github.com/penstock/penstock/relay/iot"
)

func toldJoins(t *testing.T, s *IoT) {
	gw := func(id string, rssi, snr *float64) decoders.Gateway {
		return decoders.Gateway{ID: id, RSSI: rssi, SNR: snr}
	}
	parts := []iot.Part{
		{At: at(10), Gateways: []decoders.Gateway{gw("", new(-90.0), new(7.5)), gw("a|b", new(-90.0), new(7.5))}},
		{Gateways: []decoders.Gateway{gw("a|b", new(-80.0), new(7.5)), gw("c", nil, new(-3.25))}, Position: &decoders.Position{Latitude: 51.5, Longitude: -0.125}},
		{Gateways: []decoders.Gateway{gw("a|b", new(-60.0), new(-20.0)), gw("c", new(-118.0), nil), gw("d", nil, nil)}},
	}
	want := iot.Whole{At: at(10), Position: parts[1].Position, Gateways: []decoders.Gateway{
		gw("", new(-90.0), new(7.5)), gw("a|b", new(-80.0), new(7.5)), gw("c", nil, new(-3.25)), gw("d", nil, nil),
	}}
	for n, order := range [][]int{{0, 1, 2}, {2, 1, 0}, {1, 0, 2}, {0, 0, 2, 1, 1, 2}} {
		var got []iot.Whole
		for _, i := range order {
			p := parts[i]
			p.Device, p.Dedup = "dev", fmt.Sprint("f", n)
			var err error
			got, err = s.Join(t.Context(), 1, []iot.Part{p}, time.Minute)
			mustDo(t, err)
		}
		if len(got) != 1 || !reflect.DeepEqual(got[0], want) {
			t.Errorf("in the order %v: %+v", order, got)
		}
	}
	var many []iot.Part
	for i := range 250 { // more than one script's worth
		many = append(many, iot.Part{Device: fmt.Sprint("dev", i), Dedup: "f", At: at(float64(i))})
	}
	got, err := s.Join(t.Context(), 2, many, time.Minute)
	mustDo(t, err)
	for i := range many {
		if !got[i].At.Equal(many[i].At) || got[i].Gateways != nil || got[i].Position != nil {
			t.Fatalf("part %d: %+v", i, got[i])
		}
	}
	again := iot.Part{Device: "dev0", Dedup: "f", At: at(99)}
	if got, err = s.Join(t.Context(), 2, []iot.Part{again, {Device: "dev0", Dedup: "g"}}, time.Minute); err != nil || !got[0].At.Equal(at(0)) || !got[1].At.IsZero() {
		t.Errorf("the first time stays, nothing is nothing: %+v, %v", got, err)
	}
	left, err := s.db.rdb.TTL(t.Context(), keyTold(2, "dev0", "f")).Result()
	if err != nil || left <= 0 || left > time.Minute {
		t.Errorf("it is kept for %s, %v", left, err)
	}
}

func heardGoesForward(t *testing.T, s *IoT) {
	mustDo(t, s.CreateDevice(t.Context(), 1, deviceOf("d", eui), nil), s.CreateDevice(t.Context(), 1, deviceOf("e", "other"), nil))
	for _, seconds := range []float64{20, 10, 20} {
		mustDo(t, s.SetHeard(t.Context(), 1, map[string]time.Time{"d": at(seconds), "gone": at(seconds)}))
	}
	got, err := s.Heard(t.Context(), 1, []string{"d", "e", "gone"})
	if err != nil || len(got) != 1 || !got["d"].Equal(at(20)) {
		t.Errorf("%v, %v", got, err)
	}
	mustDo(t, s.DeleteDevice(t.Context(), 1, "d"), s.SetHeard(t.Context(), 1, nil))
	if got, err = s.Heard(t.Context(), 1, []string{"d"}); err != nil || len(got) != 0 {
		t.Errorf("of a deleted device: %v, %v", got, err)
	}
}

// FuzzWhole holds that what is kept of a frame is read or refused, never worse.
func FuzzWhole(f *testing.F) {
	f.Add("at", "1770000000000000000")
	f.Add("g:a|b", "7.5|-90")
	f.Add("position", "51.5|-0.125")
	f.Add("position", "51.5|")
	f.Fuzz(func(t *testing.T, name, text string) {
		w, err := wholeFrom([]any{name, text})
		if err == nil && strings.HasPrefix(name, "g:") && len(w.Gateways) != 1 {
			t.Fatalf("%q %q: %+v", name, text, w)
		}
		if err == nil && name == "position" && w.Position == nil {
			t.Fatalf("%q: no position and no error", text)
		}
	})
}
