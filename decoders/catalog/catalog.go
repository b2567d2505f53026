// Package catalog returns decoders by the name of the codec. It is the only package that lists
// all codecs.
package catalog

import (
	"context"
	"slices"
	"strings"
	"time"

	"github.com/penstock/penstock/decoders"
	"github.com/penstock/penstock/decoders/cayenne"
	"github.com/penstock/penstock/decoders/jsonvalues"
	"github.com/penstock/penstock/decoders/script"
	"github.com/penstock/penstock/decoders/senml"
)

// The names of the codecs.
const (
	JSON       = "json"
	CayenneLPP = "cayenne_lpp"
	SenML      = "senml"
	Expr       = "expr"
	JavaScript = "javascript"
)

// Names returns the names of the codecs.
func Names() []string { return []string{JSON, CayenneLPP, SenML, Expr, JavaScript} }

// Catalog compiles the sources of codecs.
type Catalog struct {
	// JavaScript compiles a source of the codec javascript. The gateway sets it to Pool.Compile of
	// delivery/codec, because the code must not run in the gateway's process.
	JavaScript func(source string) (decoders.Decoder, error)
}

// Compile returns the decoder of a codec; "" means json. Only codecs for which TakesSource
// returns true may have a source.
//
// With useRawPayload the codec decodes every payload. Without it, the decoder returns the
// values that the network server decoded, and the codec decodes only frames without such
// values. The codec json always returns the decoded values.
//
// The error is a *decoders.Error. An error in the source has its line and column.
func (c Catalog) Compile(codec, source string, useRawPayload bool) (decoders.Decoder, error) {
	if codec == "" {
		codec = JSON
	}
	if source != "" && !TakesSource(codec) && slices.Contains(Names(), codec) {
		return nil, newError(codec, "source", "is not used by this codec")
	}
	var d decoders.Decoder
	var err error
	switch codec {
	case JSON:
		d = jsonvalues.New()
	case CayenneLPP:
		d = cayenne.New()
	case SenML:
		d = senml.New()
	case Expr:
		d, err = script.Compile(source)
	case JavaScript:
		d, err = c.JavaScript(source)
	default:
		err = newError(codec, "codec", "is unknown; the codecs are "+strings.Join(Names(), ", "))
	}
	if err != nil {
		return nil, err
	}
	selected := selector{codec: d, name: codec, useRawPayload: useRawPayload}
	if batch, ok := d.(decoders.BatchDecoder); ok {
		return batchSelector{selected, batch}, nil
	}
	return selected, nil
}

// TakesSource reports whether a codec runs a source.
func TakesSource(codec string) bool { return codec == Expr || codec == JavaScript }

func newError(codec, field, reason string) error {
	return &decoders.Error{Format: codec, Field: field, Offset: -1, Reason: reason}
}

// selector selects the codec or the values that the sender decoded.
type selector struct {
	codec         decoders.Decoder
	name          string
	useRawPayload bool
}

// Decode implements decoders.Decoder. A frame of MAC commands (port 0) and an empty frame
// have no readings and no error.
func (s selector) Decode(f *decoders.Frame) (decoders.Result, error) {
	if s.runsCodec(f) {
		res, err := s.codec.Decode(f)
		s.addObject(&res, f)
		return res, err
	}
	if f.Object != nil || len(f.Samples) > 0 {
		return jsonvalues.Object(f), nil
	}
	return decoders.Result{}, nil
}

// runsCodec reports whether the codec decodes a frame. Only json and expr can read the values that
// the sender decoded, so other codecs need a payload.
func (s selector) runsCodec(f *decoders.Frame) bool {
	if f.Object != nil || len(f.Samples) > 0 {
		return s.addsObject(f) || s.useRawPayload && (s.name == JSON || s.name == Expr || len(f.Payload) > 0)
	}
	return len(f.Payload) > 0 && !(f.HasFPort && f.FPort == 0)
}

// addsObject reports whether a frame has values in addition to the payload that the codec
// decodes.
func (s selector) addsObject(f *decoders.Frame) bool {
	return f.BesidePayload && f.Object != nil && s.name != JSON && len(f.Payload) > 0
}

// addObject adds the values that the sender posted in addition to the payload, except values
// with a key that the codec returned.
func (s selector) addObject(res *decoders.Result, f *decoders.Frame) {
	if !s.addsObject(f) {
		return
	}
	seen := make(map[string]bool, len(res.Readings))
	for _, r := range res.Readings {
		seen[r.Key] = true
	}
	object := jsonvalues.Object(f)
	for _, r := range object.Readings {
		if !seen[r.Key] {
			res.Readings = append(res.Readings, r)
		}
	}
	res.Warnings = append(res.Warnings, object.Warnings...)
	res.Errors = append(res.Errors, object.Errors...)
	if object.Excess != "" {
		res.Excess = strings.TrimPrefix(res.Excess+"; "+object.Excess, "; ")
	}
}

// batchSelector is a selector for a codec that decodes batches.
type batchSelector struct {
	selector
	batch decoders.BatchDecoder
}

// DecodeBatch implements decoders.BatchDecoder.
func (b batchSelector) DecodeBatch(ctx context.Context, owner int64, frames []*decoders.Frame, budget time.Duration) ([]decoders.Decoded, error) {
	results := make([]decoders.Decoded, len(frames))
	var codecFrames []*decoders.Frame
	var indexes []int // of codecFrames in frames
	for i, f := range frames {
		if !b.runsCodec(f) {
			results[i].Result, results[i].Err = b.Decode(f)
			continue
		}
		codecFrames, indexes = append(codecFrames, f), append(indexes, i)
	}
	if len(codecFrames) == 0 {
		return results, nil
	}
	decoded, err := b.batch.DecodeBatch(ctx, owner, codecFrames, budget)
	for i, d := range decoded {
		b.addObject(&d.Result, codecFrames[i])
		results[indexes[i]] = d
	}
	return results, err
}

// Template is an example of a decoder, which a customer can copy.
type Template struct {
	ID            string `json:"id"`
	Name          string `json:"name"`
	Description   string `json:"description"`
	Codec         string `json:"codec"`
	Source        string `json:"source"`
	UseRawPayload bool   `json:"useRawPayload"`
}

// Templates returns a template for each codec.
func Templates() []Template {
	return []Template{
		{ID: "json", Name: "Decoded values", Codec: "json", Description: "Takes the values that the network server or the sender has decoded."},
		{ID: "cayenne_lpp", Name: "Cayenne LPP", Codec: "cayenne_lpp", UseRawPayload: true, Description: "Decodes Cayenne Low Power Payload; keys are a type and a channel, such as temperature_3."},
		{ID: "senml", Name: "SenML", Codec: "senml", UseRawPayload: true, Description: "Decodes sensor measurement lists in JSON (RFC 8428)."},
		{ID: "expr", Name: "Expressions", Codec: "expr", UseRawPayload: true, Description: "Computes each key from the octets of the payload.", Source: exprTemplate},
		{ID: "javascript", Name: "JavaScript", Codec: "javascript", UseRawPayload: true, Description: "Runs a codec with decodeUplink, as device vendors publish them.", Source: javascriptTemplate},
	}
}

const exprTemplate = `# One line for each key. bytes has the payload.
temperature = (bytes[0] * 256 + bytes[1]) / 100
humidity = bytes[2] / 2
`

const javascriptTemplate = `function decodeUplink(input) {
  var b = input.bytes;
  return {
    data: {
      temperature: ((b[0] << 24 >> 16) | b[1]) / 100,
      humidity: b[2] / 2
    }
  };
}
`
