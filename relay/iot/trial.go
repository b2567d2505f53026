package iot

import (
	"context"
	"fmt"
	"time"

	"github.com/penstock/penstock/decoders"
	"github.com/penstock/penstock/relay"
)

// Trial selects the decoder to try on frames: a decoder of the account, the decoder of a device, or a
// codec and its source. Codec and Source replace those of a selected decoder.
type Trial struct {
	Account   relay.AccountID
	DecoderID string
	// DeviceID names the device whose sensors convert the values. If it is empty, the values are
	// converted as for a new device.
	DeviceID      string
	Codec, Source string
	UseRawPayload *bool // nil means the decoder's setting
	// Sensors maps keys to sensor types; nil means the decoder's mapping.
	Sensors []Mapping
}

// TrialResult is the result for a frame.
type TrialResult struct {
	// Outcome is the outcome that Ingest would return. Points are the readings of the device's
	// sensors. Refused is the reason why no readings would be stored.
	Outcome
	Time time.Time // the time of the frame
	// Values are the decoder's results, before they are mapped to sensors.
	Values           []decoders.Reading
	Errors, Warnings []string
	Took             time.Duration // time of the decoder only
	// Readings compares the points with the stored points. It is empty without a device.
	Readings []Difference
}

// Try runs a decoder on frames and stores nothing. It ignores the device identifiers of the
// frames.
//
// It returns relay.KindInvalid if the trial names no decoder or the source does not compile, and
// relay.KindNotFound if the account has no such decoder or device.
func (s *Service) Try(ctx context.Context, t Trial, arrivals []Arrival) ([]TrialResult, error) {
	device, err := s.trialDevice(ctx, t)
	if err != nil {
		return nil, err
	}
	matched, err := s.newProvisionalDevices().matchSensors(ctx, t.Account, device)
	if err != nil {
		return nil, err
	}
	var types map[string]SensorType
	if s.store != nil {
		if types, err = s.store.SensorTypes(ctx); err != nil {
			return nil, fmt.Errorf("iot: sensor types: %w", err)
		}
	}
	b := newBatch(arrivals)
	results := make([]TrialResult, len(b.frames))
	previewed := make([]PreviewedFrame, len(b.frames))
	for i, w := range b.frames {
		w.Account, w.device = t.Account, matched
		results[i] = w.try(types)
	}
	b.makeTimesUnique()
	if err := s.setDifferences(ctx, b, previewed); err != nil {
		return nil, err
	}
	for i := range results {
		if t.DeviceID != "" {
			results[i].Readings = previewed[i].Readings
		}
	}
	return results, nil
}

// TrySource runs a codec's source on frames like Try, without a store. It returns relay.KindInvalid if
// the trial names a decoder or a device.
func TrySource(ctx context.Context, compile Compiler, t Trial, arrivals []Arrival) ([]TrialResult, error) {
	if t.DecoderID != "" || t.DeviceID != "" {
		return nil, relay.Invalid("decoder_id", "Decoders and devices are known to a running gateway only.")
	}
	return New(nil, nil, nil, compile, Options{}).Try(ctx, t, arrivals)
}

// trialDevice returns the trial's device, or an empty one, with the decoder to try.
func (s *Service) trialDevice(ctx context.Context, t Trial) (*cachedDevice, error) {
	// 1. Load the device.
	var d Device
	var sensors []Sensor
	var err error
	if t.DeviceID != "" {
		if d, err = s.store.Device(ctx, t.Account, t.DeviceID); err != nil {
			return nil, err
		}
		if sensors, err = s.store.Sensors(ctx, t.Account, t.DeviceID); err != nil {
			return nil, fmt.Errorf("iot: device %s: sensors: %w", t.DeviceID, err)
		}
	}

	// 2. Load the decoder and apply the changes of the trial.
	var decoder Decoder
	id := t.DecoderID
	if id == "" && (t.Codec == "" || t.Sensors == nil) {
		id = d.DecoderID
	}
	switch {
	case id != "":
		if decoder, err = s.store.Decoder(ctx, t.Account, id); err != nil {
			return nil, err
		}
	case t.Codec == "":
		return nil, relay.Invalid("decoder_id", "Name a decoder, a device with a decoder, or a codec.")
	}
	if t.Codec != "" {
		decoder.Codec, decoder.Source = t.Codec, ""
	}
	if t.Source != "" {
		decoder.Source = t.Source
	}
	if t.Sensors != nil {
		decoder.Sensors = t.Sensors
	}
	relay.Assign(&decoder.UseRawPayload, t.UseRawPayload)

	// 3. Compile the program only once: on a busy machine, a second compilation of the same source may
	// exceed the time limit.
	program, err := s.newProgram(decoder)
	if err != nil && relay.KindOf(err) != relay.KindUnavailable {
		return nil, relay.Invalid(sourceField(err), err.Error())
	}
	return newCachedDevice(d, sensors, &compiledDecoder{Decoder: decoder, program: program}), err
}

// try decodes a frame and maps its values to sensors.
func (w *workItem) try(types map[string]SensorType) (t TrialResult) {
	w.setTime()
	defer func() {
		w.outcome.DeviceID = w.device.Device.ID
		if t.Time, t.Outcome = w.time, w.outcome; w.isAccepted() {
			t.Points = w.points
		}
	}()
	switch {
	case w.Frame.Kind != decoders.Uplink:
		w.refuse("the frame is of kind %q; only uplinks are decoded", string(w.Frame.Kind))
		return t
	case w.Frame.Encrypted:
		w.refuse("the payload is encrypted")
		return t
	case hasNoData(&w.Frame):
		w.note(nothingToDecode)
		return t
	}
	c := w.device.decoder
	started := time.Now()
	result, err := c.program.codec.Decode(w.decoderInput())
	t.Took = time.Since(started)
	t.Values, t.Warnings = result.Readings, result.Warnings
	if err != nil {
		t.Errors = append(t.Errors, err.Error())
	}
	t.Errors = append(t.Errors, result.Errors...)
	w.recordResult(result, err)
	t.Errors = append(t.Errors, w.outcome.Lost...)
	if !w.isAccepted() || c.ID == "" && len(c.Sensors) == 0 {
		return t // a source without a decoder has no mapping
	}
	if w.device.limitReached.Load() {
		w.limitReason = "the account has no room for all of the decoder's sensors"
	}
	w.mapReadings(result.Readings, types)
	return t
}
