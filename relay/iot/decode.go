package iot

import (
	"cmp"
	"context"
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/penstock/penstock/decoders"
	"github.com/penstock/penstock/relay"
)

// decode decodes each uplink into calibrated points and adds missing sensors that the decoder of a
// device maps. Accounts and their devices share the decoding time of a batch. Frames are deferred if
// no time is left for them.
func (s *Service) decode(ctx context.Context, b *frameBatch) error {
	// 1. Determine the time of each frame and select the frames to decode.
	var ready []*workItem
	for _, w := range b.frames {
		if w.device == nil {
			continue
		}
		if w.outcome.Duplicate {
			w.radio = w.supplement()
			if w.Frame.Supplement {
				w.note("the frame's readings came with event %s; this event adds only receptions and the position", w.outcome.Repeats)
			}
			continue
		}
		w.setTime()
		w.outcome.DeviceID = w.device.Device.ID
		if w.Frame.Simulated {
			w.note("simulated by the network server's console: not stored")
			continue
		}
		w.radio = radioDataOf(w) // refused frames also have radio data
		switch {
		case !w.isAccepted():
		case w.Frame.Kind != decoders.Uplink:
			w.note("frames of the kind %s have no readings", w.Frame.Kind)
		case hasNoData(&w.Frame):
			w.note(nothingToDecode)
		case w.checkDecodable(s.options.Now()):
			ready = append(ready, w)
		}
	}
	// 2. Decode the frames in order, except frames that must wait for frames of other accounts.
	sched := &scheduler{spent: make(map[relay.AccountID]time.Duration, 1)}
	for i, w := range ready {
		if w.decoded == nil && !w.DecodeNow {
			if _, overruns := w.device.decoder.program.stats(); overruns > 0 { // the codec would delay other frames
				w.outcome.Deferred = true
				continue
			}
			if sched.enqueue(w) {
				continue
			}
		}
		if err := s.decodeFrame(ctx, b, sched, w, ready[i+1:]); err != nil {
			return err
		}
	}
	// 3. Decode the waiting frames, and defer those that remain when the batch has no time left.
	for w := sched.dequeue(); w != nil; w = sched.dequeue() {
		if sched.total >= batchTime {
			w.outcome.Deferred = true
		} else if err := s.decodeFrame(ctx, b, sched, w, nil); err != nil {
			return err
		}
	}
	b.makeTimesUnique()
	return nil
}

func (w *workItem) setTime() {
	sampleTime, notes := SampleTime(&w.Frame, w.ReceivedAt)
	w.time = sampleTime
	w.outcome.Notes.Add(notes...)
	w.outcome.Notes.Add(w.Frame.Warnings...)
}

const nothingToDecode = "the frame has no readings: it has neither a payload on a port of the application nor decoded values"

// hasNoData reports whether an uplink has nothing to decode: no payload, or MAC
// commands only. Devices send such frames as acknowledgements.
func hasNoData(f *decoders.Frame) bool {
	return f.Object == nil && len(f.Samples) == 0 && (len(f.Payload) == 0 || f.HasFPort && f.FPort == 0)
}

// checkDecodable reports whether an uplink can be decoded. It refuses the frame if not.
func (w *workItem) checkDecodable(now time.Time) bool {
	d := w.device
	switch {
	case w.Frame.Encrypted:
		w.refuse("the payload is encrypted")
	case d.decoder == nil && d.Device.DecoderID != "":
		w.refuse("decoder %s of device %q is not known", d.Device.DecoderID, cmp.Or(d.Device.Name, d.Device.Identifier))
	case d.decoder == nil:
		w.refuse("device %q has no decoder", cmp.Or(d.Device.Name, d.Device.Identifier))
	case d.decoder.compileErr != nil:
		w.refuse("decoder %s: %v", cmp.Or(d.decoder.Name, d.decoder.ID), d.decoder.compileErr)
	default:
		if reason := d.decoder.program.suspensionReason(now); reason != "" {
			w.refuse("decoder %s %s", cmp.Or(d.decoder.Name, d.decoder.ID), reason)
		}
	}
	return w.isAccepted()
}

// decodeFrame decodes an uplink, unless it was decoded together with an earlier one, and maps its keys
// to sensors. A codec that decodes batches may also decode frames in following.
func (s *Service) decodeFrame(ctx context.Context, b *frameBatch, sched *scheduler, w *workItem, following []*workItem) error {
	if w.decoded == nil {
		if !w.checkDecodable(s.options.Now()) { // the decoder may have been suspended meanwhile
			return nil
		}
		took, err := s.runProgram(ctx, w, following, sched.budget(w))
		if err != nil {
			return fmt.Errorf("iot: decoder %s: %w", w.device.decoder.ID, err)
		}
		if !w.DecodeNow {
			sched.spent[w.Account] += took
			sched.total += took
		}
	}
	s.recordCall(w)
	w.recordResult(w.decoded.Result, w.decoded.Err)
	if !w.isAccepted() {
		return nil
	}
	// The sensors of a cached device are matched only once. A change of the mapping changes the
	// account's version and so replaces the cached device.
	if w.device.mapped.Load() == nil {
		if err := s.matchSensors(ctx, w.Account, w.device); err != nil {
			return err
		}
	}
	if w.device.limitReached.Load() {
		w.limitReason = s.seriesLimitReason()
	}
	// Only texts need the sensor types. They are loaded once per batch.
	if b.types == nil && slices.ContainsFunc(w.decoded.Readings, func(r decoders.Reading) bool { return r.IsText }) {
		var err error
		if b.types, err = s.SensorTypes(ctx); err != nil {
			return err
		}
	}
	w.mapReadings(w.decoded.Readings, b.types)
	return nil
}

// decoderInput returns the frame for the codec, with the device's parameters. If NetworkTime is not
// plausible, the frame's time replaces it.
func (w *workItem) decoderInput() *decoders.Frame {
	w.Frame.Params = w.device.params
	if Plausible(w.Frame.NetworkTime, w.ReceivedAt) {
		return &w.Frame
	}
	f := w.Frame
	f.NetworkTime = w.time
	return &f
}

func (w *workItem) recordResult(result decoders.Result, err error) {
	if err != nil {
		w.noteOrRefuse(len(result.Readings) > 0, err.Error())
	}
	for _, e := range result.Errors {
		w.noteOrRefuse(len(result.Readings) > 0, e)
	}
	for _, warning := range result.Warnings {
		w.note("%s", warning)
	}
	for _, excess := range [...]string{w.Frame.Excess, result.Excess} {
		if excess != "" {
			w.outcome.Lost = append(w.outcome.Lost, excess)
		}
	}
}

// noteOrRefuse records a problem: as a note if the frame has readings, else as the reason of the
// refusal.
func (w *workItem) noteOrRefuse(hasReadings bool, text string) {
	if hasReadings {
		w.note("%s", text)
		return
	}
	w.refuse("%s", text)
}

// mapReadings converts the readings of keys with a sensor to points. It uses types for texts
// only.
func (w *workItem) mapReadings(readings []decoders.Reading, types map[string]SensorType) {
	sensors := *w.device.mapped.Load()
	for i := range readings {
		r := &readings[i]
		sensor, ok := sensors[r.Key]
		if !ok {
			w.unmapped = append(w.unmapped, r.Key)
			continue
		}
		if r.IsText {
			r = w.parseNumber(r, types[sensor.SensorTypeID])
		}
		p := w.point(sensor, r)
		if math.IsNaN(p.Value) || math.IsInf(p.Value, 0) {
			w.outcome.Lost = append(w.outcome.Lost, p.Key+": the value with slope and offset is not a finite number")
			continue
		}
		w.points = append(w.points, p)
	}
	if w.limitReason != "" {
		w.noteOrRefuse(len(w.points) > 0, w.limitReason)
	}
	if len(w.points)+len(w.outcome.Lost) > 0 || !w.isAccepted() {
		return
	}
	if len(w.unmapped) == 0 {
		w.refuse("the decoder found no values")
		return
	}
	keys := slices.Compact(slices.Sorted(slices.Values(w.unmapped)))
	w.refuse("no sensor is mapped to any key of the frame: %s", decoders.Clip(strings.Join(keys, ", "), 300))
}

// parseNumber converts a text that is a decimal number to a number, with a note, if the sensor type
// has units. It returns other texts unchanged.
func (w *workItem) parseNumber(r *decoders.Reading, t SensorType) *decoders.Reading {
	if !t.MeasuresNumber() {
		return r
	}
	// strconv.ParseFloat also accepts "0x10" and "inf", which are not decimal numbers.
	text := strings.TrimSpace(r.Text)
	number, err := strconv.ParseFloat(text, 64)
	if err != nil || strings.Trim(text, "+-.eE0123456789") != "" {
		w.note("%s: the string %.40q is not a number and is stored as a string", r.Key, r.Text)
		return r
	}
	w.note("%s: the string %.40q is stored as the number %v", r.Key, r.Text, number)
	return &decoders.Reading{Key: r.Key, Value: number, Time: r.Time}
}

// point returns the calibrated point of a reading: value × slope + offset.
func (w *workItem) point(sensor *Sensor, r *decoders.Reading) Point {
	p := Point{
		Account: w.Account, Type: sensor.SensorTypeID, DeviceID: sensor.DeviceID, Identifier: w.device.Device.Identifier,
		SensorID: sensor.ID, Key: sensor.Key, Time: w.time, Text: r.Text, IsText: r.IsText,
	}
	if !r.IsText {
		p.Value = r.Value*sensor.Slope + sensor.Offset
	}
	switch {
	case r.Time.IsZero():
	case Plausible(r.Time, w.ReceivedAt):
		p.Time = r.Time.UTC()
	default:
		w.note("%s: %s; the frame's time is used", r.Key, implausibleNote(r.Time))
	}
	return p
}

// makeTimesUnique makes the times of a post's readings unique for each sensor. If a codec returns a key
// twice, or a sender reports several values for one second, the later value is stored a nanosecond
// after the earlier one instead of overwriting it. Processing a post again results in the same
// times.
func (b *frameBatch) makeTimesUnique() {
	var points []*Point
	for start, end := 0, 0; start < len(b.frames); start = end {
		for end = start + 1; end < len(b.frames) && b.frames[start].Post != "" && b.frames[end].Post == b.frames[start].Post; {
			end++
		}
		points = points[:0]
		for _, w := range b.frames[start:end] {
			for i := range w.points {
				points = append(points, &w.points[i])
			}
		}
		bySensor := func(a, b *Point) int {
			return cmp.Or(strings.Compare(a.Identifier, b.Identifier), strings.Compare(a.Key, b.Key))
		}
		slices.SortStableFunc(points, func(a, b *Point) int { return cmp.Or(bySensor(a, b), a.Time.Compare(b.Time)) })
		for i := 1; i < len(points); i++ {
			if previous := points[i-1]; bySensor(previous, points[i]) == 0 && !points[i].Time.After(previous.Time) {
				points[i].Time = previous.Time.Add(1)
			}
		}
	}
}
