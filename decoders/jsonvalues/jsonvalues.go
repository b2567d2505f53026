// Package jsonvalues has the codec json: it returns the values that the network
// server or the sender has decoded. The key of a reading is its path, with dots
// between the names ("air.temperature", "list.0.x").
//
// Numbers become readings, booleans 0 or 1, strings text; null is omitted.
// A string remains a string; the sensor type decides whether it is converted to a number. A
// list of samples with times is a history (values.AppendTimed). The limits of
// package values apply.
package jsonvalues

import (
	"slices"

	"github.com/penstock/penstock/decoders"
	"github.com/penstock/penstock/decoders/jsonbody"
	"github.com/penstock/penstock/decoders/values"
)

const format = "json"

// Decoder is the codec json.
type Decoder struct{}

// New returns the codec.
func New() Decoder { return Decoder{} }

// Decode returns the frame's Samples and the values of its Object. If a frame has
// neither, its payload is parsed as JSON.
func (Decoder) Decode(f *decoders.Frame) (decoders.Result, error) {
	if f.Object != nil || len(f.Samples) > 0 {
		return Object(f), nil
	}
	var res decoders.Result
	if len(f.Payload) == 0 {
		return res, nil
	}
	if f.Encrypted {
		return res, &decoders.Error{Format: format, Field: "payload", Offset: -1, Reason: "is encrypted"}
	}
	r := jsonbody.New(f.Payload)
	kind, v := r.Kind(), r.Any()
	if r.Close() != nil || kind != jsonbody.Object && kind != jsonbody.Array {
		return res, &decoders.Error{Format: format, Field: "object", Offset: -1,
			Reason: "is missing: the sender decoded nothing, and the payload is not JSON"}
	}
	values.AppendTimed(&res, "", v)
	return res, nil
}

// Object returns the values that the sender decoded: the frame's Samples, then the values
// of its Object.
func Object(f *decoders.Frame) decoders.Result {
	res := decoders.Result{Readings: slices.Clip(f.Samples)}
	if f.Object != nil {
		values.AppendTimed(&res, "", f.Object)
	}
	return res
}
