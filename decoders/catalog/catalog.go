// Package catalog makes a decoder of a codec's name and its source. It is the
// one place that knows all codecs; an unknown name is refused with the names
// that there are.
package catalog

import (
	"slices"
	"strings"

	"github.com/penstock/penstock/decoders"
	"github.com/penstock/penstock/decoders/cayenne"
	"github.com/penstock/penstock/decoders/jsonvalues"
	"github.com/penstock/penstock/decoders/script"
	"github.com/penstock/penstock/decoders/script/javascript"
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

// Compile returns the decoder of a codec; "" stands for json. Only codecs that
// run a source (TakesSource) are given one.
//
// With useRawPayload the codec reads the payload of every frame. Without it, a
// frame that the network server decoded already gives those values, and only
// other frames go to the codec. The codec json always takes what was decoded.
//
// The error is a *decoders.Error; that of a source names line and column.
func Compile(codec, source string, useRawPayload bool) (decoders.Decoder, error) {
	if codec == "" {
		codec = JSON
	}
	if source != "" && !TakesSource(codec) && slices.Contains(Names(), codec) {
		return nil, refused(codec, "source", "is not taken by this codec")
	}
	d, err := construct(codec, source)
	if err != nil {
		return nil, err
	}
	return chosen{codec: d, raw: useRawPayload, seesObject: codec == JSON || codec == Expr}, nil
}

// TakesSource reports whether a codec runs a source.
func TakesSource(codec string) bool { return codec == Expr || codec == JavaScript }

// construct is the map from name to codec.
func construct(codec, source string) (decoders.Decoder, error) {
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
		return javascript.Compile(source, javascript.Options{})
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
}

// Decode implements decoders.Decoder. A frame that holds MAC commands (port 0)
// or nothing at all has no readings; that is no error.
func (c chosen) Decode(f *decoders.Frame) (decoders.Result, error) {
	switch {
	case f.Object != nil || len(f.Samples) > 0:
		if c.raw && (c.seesObject || len(f.Payload) > 0) {
			return c.codec.Decode(f)
		}
		return jsonvalues.Object(f), nil
	case len(f.Payload) == 0, f.HasFPort && f.FPort == 0:
		return decoders.Result{}, nil
	}
	return c.codec.Decode(f)
}
