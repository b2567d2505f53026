// Package catalog makes a decoder of a codec's name and its source. It is the
// one place that knows all codecs; an unknown name is refused with the names
// that there are.
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
	d, err := c.construct(codec, source)
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

// construct is the map from name to codec.
func (c Catalog) construct(codec, source string) (decoders.Decoder, error) {
	switch codec {
	case JSON:
		return jsonvalues.New(), nil
	case CayenneLPP:
		return cayenne.New(), nil
	case SenML:
		return senml.New(), nil
	case Expr:
		return script.Compile(source)
	case JavaScript:
		return c.JavaScript(source)
	}
	return nil, refused(codec, "codec", "is unknown; there are "+strings.Join(Names(), ", "))
}

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

// addsObject reports whether a frame has values beside a payload that the codec decodes.
func (c chosen) addsObject(f *decoders.Frame) bool {
	return f.BesidePayload && f.Object != nil && !c.isJSON && len(f.Payload) > 0
}

// addObject adds the values beside the payload, except those whose key the codec gave too.
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
