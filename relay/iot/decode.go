package iot

import (
	"context"
	"math"
	"slices"
	"strings"

	"github.com/penstock/penstock/decoders"
)

// decode turns every uplink into calibrated points.
func (s *Service) decode(ctx context.Context, b *batch) error {
	for _, w := range b.all {
		if w.device == nil {
			continue
		}
		if !w.open() {
			w.uplink = w.addition()
			continue
		}
		w.remarks()
		w.out.DeviceID = w.device.Device.ID
		if w.Frame.Simulated {
			w.note("simulated by the network server's console: not stored")
			continue
		}
		w.uplink = uplinkOf(w)
		if w.Frame.Kind == decoders.Uplink {
			if err := s.read(ctx, w); err != nil {
				return err
			}
		}
	}
	return nil
}

// remarks settles the frame's time and notes what its sender's parser noted.
func (w *work) remarks() {
	var note string
	w.at, note = SampleTime(&w.Frame, w.ReceivedAt)
	for _, text := range append([]string{note, w.Frame.TimeNote}, w.Frame.Warnings...) {
		if text != "" {
			w.note("%s", text)
		}
	}
}

// empty reports whether an uplink carries nothing to decode: no payload, or MAC
// commands. Devices send such frames to acknowledge, and no decoder is needed.
func empty(f *decoders.Frame) bool {
	return f.Object == nil && len(f.Samples) == 0 && (len(f.Payload) == 0 || f.HasFPort && f.FPort == 0)
}

// ready refuses an uplink that cannot be decoded.
func (w *work) ready() bool {
	d := w.device
	switch {
	case w.Frame.Encrypted:
		w.refuse("the payload is encrypted")
	case d.decoder == nil && d.Device.DecoderID != "":
		w.refuse("decoder %s of device %s is not known", d.Device.DecoderID, d.Device.Identifier)
	case d.decoder == nil:
		w.refuse("device %s has no decoder", d.Device.Identifier)
	case d.decoder.broken != nil:
		w.refuse("decoder %s: %v", d.decoder.ID, d.decoder.broken)
	}
	return w.open()
}

// read decodes one uplink and maps its keys to sensors.
func (s *Service) read(ctx context.Context, w *work) error {
	d := w.device
	if empty(&w.Frame) || !w.ready() {
		return nil
	}
	w.Frame.Params = d.params
	if !Plausible(w.Frame.NetworkTime, w.ReceivedAt) {
		w.Frame.NetworkTime = w.ReceivedAt // a codec is told when it was received, whoever knows it
	}
	result, err := d.decoder.codec.Decode(&w.Frame)
	w.judge(result, err)
	if !w.open() {
		return nil
	}
	if err := s.fitSensors(ctx, w, d); err != nil {
		return err
	}
	w.mapReadings(result.Readings)
	return nil
}

// judge keeps what a codec had to say.
func (w *work) judge(result decoders.Result, err error) {
	if err != nil {
		w.remark(len(result.Readings) > 0, err.Error())
	}
	for _, e := range result.Errors {
		w.remark(len(result.Readings) > 0, e)
	}
	for _, warning := range result.Warnings {
		w.note("%s", warning)
	}
}

// remark keeps what went wrong: as a note when something could be read all the
// same, else as the reason why nothing is stored.
func (w *work) remark(partly bool, text string) {
	if partly {
		w.note("%s", text)
		return
	}
	w.refuse("%s", text)
}

// mapReadings makes points of the readings whose keys have a sensor.
func (w *work) mapReadings(readings []decoders.Reading) {
	var strangers []string
	sensors := *w.device.feeds.Load()
	for i := range readings {
		r := &readings[i]
		sensor, ok := sensors[r.Key]
		if !ok {
			strangers = append(strangers, r.Key)
			continue
		}
		p := w.point(sensor, r)
		if math.IsNaN(p.Value) || math.IsInf(p.Value, 0) {
			w.out.Lost = append(w.out.Lost, p.Key+": slope and offset make no finite number of it")
			continue
		}
		w.points = append(w.points, p)
	}
	if w.crowded != "" {
		w.remark(len(w.points) > 0, w.crowded)
	}
	if len(w.points)+len(w.out.Lost) > 0 || !w.open() {
		return
	}
	if len(strangers) == 0 {
		w.refuse("the decoder found no values")
		return
	}
	slices.Sort(strangers)
	w.refuse("no sensor is mapped to any key of the frame: %s", clip(strings.Join(slices.Compact(strangers), ", "), 300))
}

func clip(s string, n int) string {
	if len(s) <= n {
		return s
	}
	return strings.ToValidUTF8(s[:n], "") + "…"
}

// point calibrates one reading: value × slope + offset.
func (w *work) point(sensor *Sensor, r *decoders.Reading) Point {
	p := Point{
		Account: w.Account, Type: sensor.SensorTypeID, DeviceID: sensor.DeviceID, Identifier: w.device.Device.Identifier,
		SensorID: sensor.ID, Key: sensor.Key, Time: w.at, Text: r.Text, IsText: r.IsText,
	}
	if !r.IsText {
		p.Value = r.Value*sensor.Slope + sensor.Offset
	}
	switch {
	case r.Time.IsZero():
	case Plausible(r.Time, w.ReceivedAt):
		p.Time = r.Time.UTC()
	default:
		w.note("%s", implausible(r.Time))
	}
	return p
}
