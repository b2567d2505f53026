package iot

import (
	"encoding/hex"
	"encoding/json"

	"github.com/penstock/penstock/decoders"
	"github.com/penstock/penstock/relay/account"
)

// Arrival returns the received frame; ok is false if the raw frame is incomplete.
func (r RawFrame) Arrival(acct account.ID) (a Arrival, ok bool) {
	if r.Truncated {
		return a, false
	}
	payload, err := hex.DecodeString(r.Payload)
	if err != nil {
		return a, false
	}
	f := decoders.Frame{
		Sender: r.Sender, Kind: decoders.EventKind(r.Kind), Payload: payload, Encrypted: r.Encrypted, SampleTime: r.Time,
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
