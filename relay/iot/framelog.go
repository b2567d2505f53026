package iot

import (
	"context"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"strings"
	"time"

	"github.com/penstock/penstock/decoders"
	"github.com/penstock/penstock/relay"
)

// RawFrame is a logged frame of a device whose frame logging is on.
type RawFrame struct {
	ID         string    `json:"id"` // the journal record that brought it
	DeviceID   string    `json:"device_id"`
	ReceivedAt time.Time `json:"received_at"`
	Time       time.Time `json:"time,omitzero"` // as SampleTime; zero in frames logged by earlier versions
	Sender     string    `json:"sender"`
	Kind       string    `json:"kind"` // a decoders.FrameKind
	FCnt       *int64    `json:"f_cnt,omitempty"`
	FPort      *int64    `json:"f_port,omitempty"`
	Payload    string    `json:"payload,omitempty"` // hex
	Encrypted  bool      `json:"encrypted,omitempty"`
	// Object holds values decoded by the sender; Samples likewise, with times.
	Object  json.RawMessage `json:"object,omitempty"`
	Samples json.RawMessage `json:"samples,omitempty"`
	// BesidePayload is that of the frame.
	BesidePayload bool `json:"beside_payload,omitempty"`
	// Truncated reports that the payload or the decoded values are omitted because
	// they are too long or cannot be encoded as JSON.
	Truncated bool     `json:"truncated,omitempty"`
	RSSI      *float64 `json:"rssi,omitempty"` // dBm, of the best gateway
	SNR       *float64 `json:"snr,omitempty"`  // dB, of the best gateway
	Gateways  int      `json:"gateways,omitempty"`
	Refused   string   `json:"refused,omitempty"` // why nothing was stored
	Note      string   `json:"note,omitempty"`
}

// MaxFrames is how many raw frames are kept of a device, and FrameRetention for
// how long.
const (
	MaxFrames      = 100
	FrameRetention = 7 * 24 * time.Hour
)

// Limits of a raw frame, in bytes.
const (
	maxRawPayload = 1024
	maxRawValues  = 4096
	maxRawText    = 500
)

// Frames lists the raw frames kept of a device, newest first.
func (s *Service) Frames(ctx context.Context, acct relay.AccountID, deviceID string) ([]RawFrame, error) {
	if _, err := s.store.Device(ctx, acct, deviceID); err != nil {
		return nil, err
	}
	return s.store.Frames(ctx, acct, deviceID, s.options.Now().Add(-FrameRetention))
}

// keepFrames saves the raw frames of devices whose frame logging is on, with their
// outcome. Processing a record again replaces its frames.
func (s *Service) keepFrames(ctx context.Context, b *batch) error {
	kept := make(map[relay.AccountID][]RawFrame)
	for _, w := range b.all {
		if w.device != nil && w.device.Device.FrameLogging && !w.out.Duplicate && !w.out.Deferred {
			kept[w.Account] = append(kept[w.Account], w.raw())
		}
	}
	for acct, frames := range kept {
		if err := s.store.KeepFrames(ctx, acct, frames); err != nil {
			return fmt.Errorf("iot: raw frames: %w", err)
		}
	}
	return nil
}

func (w *work) raw() RawFrame {
	f := &w.Frame
	r := RawFrame{
		ID: w.Record, DeviceID: w.device.Device.ID, ReceivedAt: w.ReceivedAt.UTC(), Time: w.at,
		Sender: f.Sender, Kind: string(f.Kind), Encrypted: f.Encrypted, BesidePayload: f.BesidePayload, Gateways: len(f.Gateways),
		Refused: decoders.Clip(w.out.Refused, maxRawText), Note: decoders.Clip(strings.Join(w.out.Notes, "; "), maxRawText),
	}
	if f.HasFCnt {
		r.FCnt = new(f.FCnt)
	}
	if f.HasFPort {
		r.FPort = new(int64(f.FPort))
	}
	if best, ok := f.BestGateway(); ok {
		r.RSSI, r.SNR = best.RSSI, best.SNR
	}
	r.values(f)
	return r
}

// values sets the payload and the decoded values, up to the limits.
func (r *RawFrame) values(f *decoders.Frame) {
	if len(f.Payload) <= maxRawPayload {
		r.Payload = hex.EncodeToString(f.Payload)
	} else {
		r.Truncated = true
	}
	if f.Object != nil {
		r.Object = r.marshal(f.Object)
	}
	if len(f.Samples) > 0 {
		r.Samples = r.marshal(samplesOf(f.Samples))
	}
}

func (r *RawFrame) marshal(v any) json.RawMessage {
	b, err := json.Marshal(v)
	if err != nil || len(b) > maxRawValues {
		r.Truncated = true
		return nil
	}
	return b
}

// sample is the JSON form of a decoders.Reading.
type sample struct {
	Key   string    `json:"key"`
	Value *float64  `json:"value,omitempty"`
	Text  *string   `json:"text,omitempty"`
	Time  time.Time `json:"time,omitzero"`
}

func samplesOf(readings []decoders.Reading) []sample {
	out := make([]sample, len(readings))
	for i, r := range readings {
		out[i] = sample{Key: r.Key, Time: r.Time}
		if r.IsText {
			out[i].Text = new(r.Text)
		} else {
			out[i].Value = new(r.Value)
		}
	}
	return out
}

// Arrival returns the received frame; ok is false if the raw frame is incomplete.
func (r RawFrame) Arrival(acct relay.AccountID) (a Arrival, ok bool) {
	if r.Truncated {
		return a, false
	}
	payload, err := hex.DecodeString(r.Payload)
	if err != nil {
		return a, false
	}
	f := decoders.Frame{
		Sender: r.Sender, Kind: decoders.FrameKind(r.Kind), Payload: payload, Encrypted: r.Encrypted, SampleTime: r.Time, BesidePayload: r.BesidePayload,
	}
	if r.FCnt != nil {
		f.FCnt, f.HasFCnt = *r.FCnt, true
	}
	if r.FPort != nil {
		f.FPort, f.HasFPort = int(*r.FPort), true
	}
	if len(r.Object) > 0 && json.Unmarshal(r.Object, &f.Object) != nil {
		return a, false
	}
	var samples []sample
	if len(r.Samples) > 0 && json.Unmarshal(r.Samples, &samples) != nil {
		return a, false
	}
	for _, s := range samples {
		f.Samples = append(f.Samples, s.reading())
	}
	return Arrival{Record: r.ID, Account: acct, ReceivedAt: r.ReceivedAt, Frame: f}, true
}

func (s sample) reading() decoders.Reading {
	r := decoders.Reading{Key: s.Key, Time: s.Time}
	switch {
	case s.Text != nil:
		r.Text, r.IsText = *s.Text, true
	case s.Value != nil:
		r.Value = *s.Value
	}
	return r
}
