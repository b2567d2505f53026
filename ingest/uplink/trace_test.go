package uplink

import (
	"testing"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/penstock/penstock/decoders"
	"github.com/penstock/penstock/relay/iot"
)

func TestStepsOfFrames(t *testing.T) {
	frameTime := time.Date(2026, 3, 1, 12, 0, 0, 0, time.UTC)
	point := func(v float64) *iot.Point {
		return &iot.Point{Type: "temperature", Key: "t", Value: v, Time: frameTime}
	}
	device := iot.Device{ID: "d1", Identifier: "shed", Name: "The shed"}
	decoder := iot.Decoder{ID: "lpp", Name: "LPP", Codec: "cayenne_lpp"}
	types := map[string]iot.SensorType{"temperature": {ID: "temperature", Name: "Temperature", MetricUnits: "°C"}}
	for _, tc := range []struct {
		name  string
		frame iot.PreviewedFrame
		want  []string
	}{
		{"a stored frame", iot.PreviewedFrame{Identifier: "shed", Kind: decoders.Uplink, Device: device, Decoder: decoder, Time: frameTime, Readings: []iot.Difference{
			{Effect: iot.Unchanged, Key: "t", SensorTypeID: "temperature", Time: frameTime, New: point(21.5), Old: point(21.5)},
		}}, []string{
			`device: The device "The shed" has the identifier shed.`, `decoder: The decoder "LPP" decodes the frame.`, "reading: t (Temperature) 21.5 °C.",
			"stored at 12:00:00: Readings stored with the frame's time.",
		}},
		{"a frame after a change of its decoder", iot.PreviewedFrame{Identifier: "shed", Kind: decoders.Uplink, Device: device, Decoder: decoder, Readings: []iot.Difference{
			{Effect: iot.Changed, Key: "t", Time: frameTime, New: point(2), Old: point(20)},
			{Effect: iot.Added, Key: "u", Time: frameTime, New: &iot.Point{Key: "u", Text: "open", IsText: true}},
			{Effect: iot.Retained, Key: "v", Time: frameTime, Old: point(7)},
		}}, []string{
			`device: The device "The shed" has the identifier shed.`, `decoder: The decoder "LPP" decodes the frame.`,
			"reading: t 2 °C. The stored value is 20 °C; a replay changes it.", `reading: u "open". It is not stored; a replay adds it.`,
			"reading: v 7 °C is stored. The decoder no longer returns it; a replay keeps it.",
			"stored at 12:00:00: 2 of 3 readings stored with the frame's time.",
		}},
		{"a duplicate", iot.PreviewedFrame{Outcome: iot.Outcome{Duplicate: true, Repeats: "n1-u3.1"}, Identifier: "shed", Kind: decoders.Uplink, Device: device}, []string{
			`device: The device "The shed" has the identifier shed.`, "duplicate: The frame was received before as the event n1-u3, so it is dropped.",
		}},
		{"a frame of an unknown device", iot.PreviewedFrame{Outcome: iot.Outcome{Refused: "the account has no location"}, Identifier: "shed", Device: iot.Device{Identifier: "shed"}}, []string{
			"device: The device shed is unknown. A replay creates it.", "refused: No readings are stored: the account has no location.",
		}},
		{"a join", iot.PreviewedFrame{Identifier: "shed", Kind: decoders.Join, Device: device}, []string{
			`device: The device "The shed" has the identifier shed.`, "decoder: No decoder is used, because only uplinks have readings.",
		}},
		{"a frame without a mapped value", iot.PreviewedFrame{Outcome: iot.Outcome{Notes: decoders.Notes{"payload is empty"}}, Identifier: "shed", Kind: decoders.Uplink, Device: iot.Device{ID: "d1", Identifier: "shed"}}, []string{
			"decoder: The device has no decoder, so nothing is decoded.", "note: payload is empty",
			"stored: No readings are stored, because no sensor uses a value of this frame.",
		}},
	} {
		var got []string
		for _, s := range Steps(&tc.frame, types) {
			name := s.Name
			if !s.At.IsZero() {
				name += " at " + s.At.Format(time.TimeOnly)
			}
			got = append(got, name+": "+s.Text)
		}
		if diff := cmp.Diff(tc.want, got); diff != "" {
			t.Errorf("%s (-want +got):\n%s", tc.name, diff)
		}
	}
}
