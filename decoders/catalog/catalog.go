// Package catalog makes a decoder of a codec's name and its source. It is the one place with
// all codecs; an unknown name is refused with the names that there are.
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

// The codecs' names.
const (
	JSON       = "json"
	CayenneLPP = "cayenne_lpp"
	SenML      = "senml"
	Expr       = "expr"
	JavaScript = "javascript"
)

// Names lists the codecs.
func Names() []string { return []string{JSON, CayenneLPP, SenML, Expr, JavaScript} }

// Catalog compiles the sources of codecs.
type Catalog struct {
	// JavaScript compiles a source of the codec javascript, whose code must not run in the
	// gateway: delivery/codec runs it in processes of its own.
	JavaScript func(source string) (decoders.Decoder, error)
}

// Compile returns the decoder of a codec; "" stands for json. Only codecs that
// run a source (TakesSource) are given one.
//
// With useRawPayload the codec reads the payload of every frame. Without it, a
// frame that the network server decoded already gives those values, and only
// other frames go to the codec. The codec json always takes what was decoded.
//
// The error is a *decoders.Error; that of a source names line and column.
func (c Catalog) Compile(codec, source string, useRawPayload bool) (decoders.Decoder, error) {
	if codec == "" {
		codec = JSON
	}
	if source != "" && !TakesSource(codec) && slices.Contains(Names(), codec) {
		return nil, refused(codec, "source", "is not taken by this codec")
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
		err = refused(codec, "codec", "is unknown; there are "+strings.Join(Names(), ", "))
	}
	if err != nil {
		return nil, err
	}
	choice := chosen{codec: d, raw: useRawPayload, seesObject: codec == JSON || codec == Expr, isJSON: codec == JSON}
	if batch, ok := d.(decoders.BatchDecoder); ok {
		return chosenBatch{choice, batch}, nil
	}
	return choice, nil
}

// TakesSource reports whether a codec runs a source.
func TakesSource(codec string) bool { return codec == Expr || codec == JavaScript }

func refused(codec, field, reason string) error {
	return &decoders.Error{Format: codec, Field: field, Offset: -1, Reason: reason}
}

// chosen decides between what the sender decoded and the codec.
type chosen struct {
	codec decoders.Decoder
	raw   bool
	// seesObject: the codec can work from what the sender decoded alone.
	seesObject bool
	isJSON     bool
}

// Decode implements decoders.Decoder. A frame that holds MAC commands (port 0)
// or nothing at all has no readings; that is not an error.
func (c chosen) Decode(f *decoders.Frame) (decoders.Result, error) {
	if c.runs(f) {
		res, err := c.codec.Decode(f)
		c.addObject(&res, f)
		return res, err
	}
	if f.Object != nil || len(f.Samples) > 0 {
		return jsonvalues.Object(f), nil
	}
	return decoders.Result{}, nil
}

// runs reports whether the codec decodes a frame.
func (c chosen) runs(f *decoders.Frame) bool {
	if f.Object != nil || len(f.Samples) > 0 {
		return c.addsObject(f) || c.raw && (c.seesObject || len(f.Payload) > 0)
	}
	return len(f.Payload) > 0 && !(f.HasFPort && f.FPort == 0)
}

// addsObject reports whether a frame has values in addition to a payload that the codec
// decodes.
func (c chosen) addsObject(f *decoders.Frame) bool {
	return f.BesidePayload && f.Object != nil && !c.isJSON && len(f.Payload) > 0
}

// addObject adds the values that come with the payload, except those whose key the codec gave
// too.
func (c chosen) addObject(res *decoders.Result, f *decoders.Frame) {
	if !c.addsObject(f) {
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

// chosenBatch is chosen for a codec that decodes batches.
type chosenBatch struct {
	chosen
	batch decoders.BatchDecoder
}

// DecodeBatch implements decoders.BatchDecoder.
func (c chosenBatch) DecodeBatch(ctx context.Context, owner int64, frames []*decoders.Frame, budget time.Duration) ([]decoders.Decoded, error) {
	results := make([]decoders.Decoded, len(frames))
	var run []*decoders.Frame
	var places []int // of the frames in run
	for i, f := range frames {
		if !c.runs(f) {
			results[i].Result, results[i].Err = c.Decode(f)
			continue
		}
		run, places = append(run, f), append(places, i)
	}
	if len(run) == 0 {
		return results, nil
	}
	decoded, err := c.batch.DecodeBatch(ctx, owner, run, budget)
	for i, d := range decoded {
		c.addObject(&d.Result, run[i])
		results[places[i]] = d
	}
	return results, err
}

// Template is a decoder to begin with.
type Template struct {
	ID            string
	Name          string
	Description   string
	Codec         string
	Source        string
	UseRawPayload bool
}

// Templates returns a template for each way to decode. Each source compiles.
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
