package iot

import (
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

// decode decodes every uplink into calibrated points, and adds the sensors that a
// decoder maps and the device lacks. Accounts and their devices
// share the decoding time of a batch; frames beyond it are deferred.
func (s *Service) decode(ctx context.Context, b *batch) error {
	// 1. Determine the time of each frame, and which are to be decoded.
	var ready []*work
	for _, w := range b.frames {
		if w.device == nil {
			continue
		}
		if w.outcome.Duplicate {
			w.radio = w.supplement()
			if w.Frame.Supplement {
				w.note("its readings came with event %s; of this one, only what it adds about receptions and the position is used", w.outcome.Repeats)
			}
			continue
		}
		w.setTime()
		w.outcome.DeviceID = w.device.Device.ID
		if w.Frame.Simulated {
			w.note("simulated by the network server's console: not stored")
			continue
		}
		w.radio = radioDataOf(w) // also of a frame that is refused
		switch {
		case !w.open():
		case w.Frame.Kind != decoders.Uplink:
			w.note("frames of the kind %s have no readings", w.Frame.Kind)
		case hasNoData(&w.Frame):
			w.note(nothingToDecode)
		case w.decodable(s.options.Now()):
			ready = append(ready, w)
		}
	}
	// 2. Decode them in order, except those that wait for frames of others.
	t := &scheduler{spent: make(map[relay.AccountID]time.Duration, 1)}
	for i, w := range ready {
		if w.decoded == nil && !w.NoDefer {
			if _, overruns := w.device.decoder.program.load(); overruns > 0 { // others would wait for it
				w.outcome.Deferred = true
				continue
			}
			if t.enqueue(w) {
				continue
			}
		}
		if err := s.decodeFrame(ctx, t, w, ready[i+1:]); err != nil {
			return err
		}
	}
	// 3. Decode those that waited, and defer those that are left when the time of the batch is
	// over.
	for w := t.next(); w != nil; w = t.next() {
		if t.total >= batchTime {
			w.outcome.Deferred = true
		} else if err := s.decodeFrame(ctx, t, w, nil); err != nil {
			return err
		}
	}
	b.uniqueTimes()
	return nil
}

func (w *work) setTime() {
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

// decodable reports whether an uplink can be decoded, and refuses it otherwise.
func (w *work) decodable(now time.Time) bool {
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
	default:
		if reason := d.decoder.program.suspended(now); reason != "" {
			w.refuse("decoder %s %s", d.decoder.ID, reason)
		}
	}
	return w.open()
}

// decodeFrame decodes one uplink, unless that was done with an earlier one, and maps its
// keys to sensors. With it, frames of following may be decoded.
func (s *Service) decodeFrame(ctx context.Context, t *scheduler, w *work, following []*work) error {
	if w.decoded == nil {
		if !w.decodable(s.options.Now()) { // the decoder may have been suspended meanwhile
			return nil
		}
		took, err := s.run(ctx, w, following, t.budget(w))
		if err != nil {
			return fmt.Errorf("iot: decoder %s: %w", w.device.decoder.ID, err)
		}
		if !w.NoDefer {
			t.spent[w.Account] += took
			t.total += took
		}
	}
	s.recordRun(w)
	w.recordResult(w.decoded.Result, w.decoded.Err)
	if !w.open() {
		return nil
	}
	// A cached device is fitted once: every change that requires fitting again changes the
	// account's version and thus replaces the cached device.
	if w.device.mapped.Load() == nil {
		if err := s.fit(ctx, w.Account, w.device); err != nil {
			return err
		}
	}
	if w.device.limitReached.Load() {
		w.limitReason = s.seriesLimitReason()
	}
	// Only texts need the sensor types, which are loaded once: a change of one changes the version
	// of the account's records.
	var types map[string]SensorType
	if slices.ContainsFunc(w.decoded.Readings, func(r decoders.Reading) bool { return r.IsText }) {
		a := s.accounts.account(w.Account)
		a.mu.Lock()
		types = a.types
		a.mu.Unlock()
		if types == nil {
			var err error
			if types, err = s.SensorTypes(ctx); err != nil {
				return err
			}
			a.mu.Lock()
			a.types = types
			a.mu.Unlock()
		}
	}
	w.mapReadings(w.decoded.Readings, types)
	return nil
}

// decoderInput returns the frame for the codec, with the device's parameters. If the
// network gives no plausible time of receipt, it is the frame's own time.
func (w *work) decoderInput() *decoders.Frame {
	w.Frame.Params = w.device.params
	if Plausible(w.Frame.NetworkTime, w.ReceivedAt) {
		return &w.Frame
	}
	f := w.Frame
	f.NetworkTime = w.time
	return &f
}

func (w *work) recordResult(result decoders.Result, err error) {
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

// noteOrRefuse records a problem: as a note if the frame has readings all the same,
// otherwise as the reason why nothing is stored.
func (w *work) noteOrRefuse(hasReadings bool, text string) {
	if hasReadings {
		w.note("%s", text)
		return
	}
	w.refuse("%s", text)
}

// mapReadings converts the readings whose keys have a sensor to points. The types are
// needed for texts only.
func (w *work) mapReadings(readings []decoders.Reading, types map[string]SensorType) {
	sensors := *w.device.mapped.Load()
	for i := range readings {
		r := &readings[i]
		sensor, ok := sensors[r.Key]
		if !ok {
			w.unmapped = append(w.unmapped, r.Key)
			continue
		}
		if r.IsText {
			r = w.numberOf(r, types[sensor.SensorTypeID])
		}
		p := w.point(sensor, r)
		if math.IsNaN(p.Value) || math.IsInf(p.Value, 0) {
			w.outcome.Lost = append(w.outcome.Lost, p.Key+": slope and offset make no finite number of it")
			continue
		}
		w.points = append(w.points, p)
	}
	if w.limitReason != "" {
		w.noteOrRefuse(len(w.points) > 0, w.limitReason)
	}
	if len(w.points)+len(w.outcome.Lost) > 0 || !w.open() {
		return
	}
	if len(w.unmapped) == 0 {
		w.refuse("the decoder found no values")
		return
	}
	keys := slices.Compact(slices.Sorted(slices.Values(w.unmapped)))
	w.refuse("no sensor is mapped to any key of the frame: %s", decoders.Clip(strings.Join(keys, ", "), 300))
}

// numberOf returns a text reading of a sensor type that has units as the number that the
// text spells, with a note. Another text stays text.
func (w *work) numberOf(r *decoders.Reading, t SensorType) *decoders.Reading {
	if !t.MeasuresNumber() {
		return r
	}
	// Of the forms of strconv.ParseFloat, only decimal numbers count: no "0x10", no "inf".
	text := strings.TrimSpace(r.Text)
	number, err := strconv.ParseFloat(text, 64)
	if err != nil || strings.Trim(text, "+-.eE0123456789") != "" {
		w.note("%s: the text %.40q is not a number and is stored as text", r.Key, r.Text)
		return r
	}
	w.note("%s: the text %.40q is stored as the number %v", r.Key, r.Text, number)
	return &decoders.Reading{Key: r.Key, Value: number, Time: r.Time}
}

// point calibrates one reading: value × slope + offset.
func (w *work) point(sensor *Sensor, r *decoders.Reading) Point {
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

// pointKey identifies a point in a reading store: a sensor and a time. The store
// keeps one value for each.
type pointKey struct {
	identifier, key string
	ns              int64
}

// uniqueTimes makes the times of a post's readings unique within each sensor. If a
// codec returns a key twice, or a sender reports several values for one second,
// the later value is stored a nanosecond after the earlier one instead of
// overwriting it. The same post always gets the same times.
func (b *batch) uniqueTimes() {
	seen := make(map[pointKey]bool)
	for start, end := 0, 0; start < len(b.frames); start = end {
		for end = start + 1; end < len(b.frames) && b.frames[start].Post != "" && b.frames[end].Post == b.frames[start].Post; {
			end++
		}
		post := b.frames[start:end]
		if len(post) == 1 && len(post[0].points) < 2 {
			continue
		}
		clear(seen)
		if !hasCollision(post, seen) {
			continue
		}
		sensors := make(map[pointKey][]*Point)
		for _, w := range post {
			for i := range w.points {
				p := &w.points[i]
				sensor := pointKey{identifier: p.Identifier, key: p.Key}
				sensors[sensor] = append(sensors[sensor], p)
			}
		}
		for _, points := range sensors {
			slices.SortStableFunc(points, func(a, b *Point) int { return a.Time.Compare(b.Time) })
			for i, p := range points[1:] {
				if previous := points[i].Time; !p.Time.After(previous) {
					p.Time = previous.Add(1)
				}
			}
		}
	}
}

func hasCollision(post []*work, seen map[pointKey]bool) bool {
	for _, w := range post {
		for i := range w.points {
			p := &w.points[i]
			key := pointKey{p.Identifier, p.Key, p.Time.UnixNano()}
			if seen[key] {
				return true
			}
			seen[key] = true
		}
	}
	return false
}
