package iot

import (
	"context"
	"fmt"
	"time"

	"github.com/penstock/penstock/decoders"
	"github.com/penstock/penstock/relay"
	"github.com/penstock/penstock/relay/account"
)

// Trial says what is tried on frames: a decoder of the account, that of a
// device, or a codec and its source; a source beside a decoder stands in the
// place of the decoder's own.
type Trial struct {
	Account   account.ID
	DecoderID string
	// DeviceID names the device whose sensors take the values; without one they
	// are taken as by a new device.
	DeviceID      string
	Codec, Source string
	UseRawPayload *bool // nil: as the decoder has it
	// Sensors map the keys; nil: as the decoder has them.
	Sensors []Mapping
}

// Tried is what became of one frame.
type Tried struct {
	// Outcome is as Ingest would give it: Points are what the device's sensors
	// would get, Refused is why nothing would be stored.
	Outcome
	At time.Time // the frame's
	// Values are what the decoder gave, before sensors take them.
	Values           []decoders.Reading
	Errors, Warnings []string
	Took             time.Duration // of the decoder alone
	// Readings compare with what is stored of the device; without a device
	// there is nothing to compare with.
	Readings []Difference
}

// Try runs a decoder on frames and stores nothing. What a frame says of its
// device is not looked at.
//
// It returns Invalid if there is nothing to try or the source does not compile,
// and NotFound if the account has no such decoder or device.
func (s *Service) Try(ctx context.Context, t Trial, arrivals []Arrival) ([]Tried, error) {
	p, err := s.onTrial(ctx, t)
	if err != nil {
		return nil, err
	}
	fitted, err := s.newLodging().fit(ctx, t.Account, p)
	if err != nil {
		return nil, err
	}
	b := newBatch(arrivals)
	out := make([]Tried, len(b.all))
	foretold := make([]Foretold, len(b.all))
	for i, w := range b.all {
		w.Account, w.device = t.Account, fitted
		out[i] = w.try()
	}
	if err := s.differences(ctx, b, foretold); err != nil {
		return nil, err
	}
	for i := range out {
		if t.DeviceID != "" {
			out[i].Readings = foretold[i].Readings
		}
	}
	return out, nil
}

// TrySource is Try without any records: the trial names neither a decoder nor a
// device.
func TrySource(ctx context.Context, compile Compiler, t Trial, arrivals []Arrival) ([]Tried, error) {
	if t.DecoderID != "" || t.DeviceID != "" {
		return nil, relay.Invalid("decoder_id", "Decoders and devices are known to a running gateway only.")
	}
	return New(nil, nil, nil, compile, Options{}).Try(ctx, t, arrivals)
}

// onTrial is a profile of the device, or of none, with what is tried.
func (s *Service) onTrial(ctx context.Context, t Trial) (*profile, error) {
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
	c, err := s.tried(ctx, t, d)
	if err != nil {
		return nil, err
	}
	return newProfile(d, sensors, c), nil
}

// tried is the decoder that is tried, compiled.
func (s *Service) tried(ctx context.Context, t Trial, d Device) (*compiled, error) {
	var decoder Decoder
	id := t.DecoderID
	if id == "" && (t.Codec == "" || t.Sensors == nil) {
		id = d.DecoderID
	}
	switch {
	case id != "":
		var err error
		if decoder, err = s.store.Decoder(ctx, t.Account, id); err != nil {
			return nil, err
		}
	case t.Codec == "":
		return nil, relay.Invalid("decoder_id", "Name a decoder or a device that has one, or give a codec.")
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
	assign(&decoder.UseRawPayload, t.UseRawPayload)
	p := Problems{}
	s.checkSource(p, decoder)
	if err := p.Err(); err != nil {
		return nil, err
	}
	c := &compiled{Decoder: decoder}
	c.codec, c.broken = s.compile(decoder.Codec, decoder.Source, decoder.UseRawPayload)
	return c, nil
}

// try decodes one frame and gives its values to the sensors.
func (w *work) try() Tried {
	w.remarks()
	t := Tried{At: w.at}
	switch {
	case w.Frame.Kind != decoders.Uplink:
		w.refuse("the frame is %q, only an uplink is decoded", string(w.Frame.Kind))
	case w.Frame.Encrypted:
		w.refuse("the payload is encrypted")
	case empty(&w.Frame):
		w.note("the frame holds nothing to decode")
	default:
		t.run(w)
	}
	w.out.DeviceID = w.device.Device.ID
	if t.Outcome = w.out; w.open() {
		t.Points = w.points
	}
	return t
}

func (t *Tried) run(w *work) {
	w.Frame.Params = w.device.params
	begun := time.Now()
	result, err := w.device.decoder.codec.Decode(&w.Frame)
	t.Took = time.Since(begun)
	t.Values, t.Warnings = result.Readings, result.Warnings
	if err != nil {
		t.Errors = append(t.Errors, err.Error())
	}
	t.Errors = append(t.Errors, result.Errors...)
	w.judge(result, err)
	if !w.open() || w.device.decoder.ID == "" && len(w.device.decoder.Sensors) == 0 {
		return // a source alone maps no keys
	}
	if w.device.crowded.Load() {
		w.crowded = "the account has no room for all of the decoder's sensors"
	}
	w.mapReadings(result.Readings)
}
