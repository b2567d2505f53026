package catalog

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/penstock/penstock/decoders"
	"github.com/penstock/penstock/decoders/decoderstest"
	"github.com/penstock/penstock/decoders/script/javascript"
	"github.com/penstock/penstock/decoders/values"
	"github.com/penstock/penstock/relay/relaytest"
)

func TestDecode(t *testing.T) {
	lpp := []byte{3, 103, 1, 16}
	object := map[string]any{"air": map[string]any{"t": 5.0}}
	samples := []decoders.Reading{{Key: "s", Value: 9}}
	for _, c := range []struct {
		name, codec, source string
		useRawPayload       bool
		frame               decoders.Frame
		want                map[string]float64
		wantErr             bool
	}{
		{"the sender's values are preferred to the codec", CayenneLPP, "", false, decoders.Frame{Payload: lpp, Object: object}, map[string]float64{"air.t": 5}, false},
		{"with useRawPayload the codec reads the payload", CayenneLPP, "", true, decoders.Frame{Payload: lpp, Object: object}, map[string]float64{"temperature_3": 27.2}, false},
		{"without decoded values the codec reads the payload", CayenneLPP, "", false, decoders.Frame{Payload: lpp}, map[string]float64{"temperature_3": 27.2}, false},
		{"without a payload the sender's values are returned", CayenneLPP, "", true, decoders.Frame{Object: object}, map[string]float64{"air.t": 5}, false},
		{"samples count as decoded values", CayenneLPP, "", false, decoders.Frame{Payload: lpp, Samples: samples}, map[string]float64{"s": 9}, false},
		{"an empty object counts as decoded values", CayenneLPP, "", false, decoders.Frame{Payload: lpp, Object: map[string]any{}}, map[string]float64{}, false},
		{"json returns the sender's values even with useRawPayload", JSON, "", true, decoders.Frame{Payload: lpp, Object: object}, map[string]float64{"air.t": 5}, false},
		{"the default codec is json", "", "", false, decoders.Frame{Object: object}, map[string]float64{"air.t": 5}, false},
		{"json cannot read a binary payload", JSON, "", false, decoders.Frame{Payload: lpp}, nil, true},
		{"senml reads a payload", SenML, "", false, decoders.Frame{Payload: []byte(`[{"n":"t","v":4}]`)}, map[string]float64{"t": 4}, false},
		{"an expression reads the payload", Expr, "t = bytes[3]", false, decoders.Frame{Payload: lpp}, map[string]float64{"t": 16}, false},
		{"an expression may read the object alone", Expr, "t = object.air.t * 2", true, decoders.Frame{Object: object}, map[string]float64{"t": 10}, false},
		{"port 0 carries no data", CayenneLPP, "", true, decoders.Frame{Payload: []byte{2}, HasFPort: true}, map[string]float64{}, false},
		{"an empty payload has no readings", Expr, "t = bytes[3]", true, decoders.Frame{HasFPort: true, FPort: 1}, map[string]float64{}, false},
		{"ciphertext for cayenne_lpp", CayenneLPP, "", false, decoders.Frame{Payload: lpp, Encrypted: true}, nil, true},
		{"ciphertext for an expression", Expr, "t = 1", true, decoders.Frame{Payload: lpp, Encrypted: true}, nil, true},
		{"a published codec reads the payload", JavaScript, "function Decode(fPort, bytes) { return {t: bytes[3] / 2}; }", true, decoders.Frame{Payload: lpp, Object: object}, map[string]float64{"t": 8}, false},
		{"ciphertext for JavaScript", JavaScript, "function Decode(fPort, bytes) { return {t: bytes[3] / 2}; }", true, decoders.Frame{Payload: lpp, Encrypted: true}, nil, true},
		{"ciphertext for senml", SenML, "", false, decoders.Frame{Payload: []byte(`[{"n":"t","v":4}]`), Encrypted: true}, nil, true},
		{"ciphertext for json", JSON, "", false, decoders.Frame{Payload: []byte(`{"t":4}`), Encrypted: true}, nil, true},
	} {
		t.Run(c.name, func(t *testing.T) {
			d, err := testCatalog.Compile(c.codec, c.source, c.useRawPayload)
			relaytest.NoError(t, err)
			res, err := d.Decode(&c.frame)
			if (err != nil) != c.wantErr {
				t.Fatalf("error = %v, want an error: %t", err, c.wantErr)
			}
			got := map[string]float64{}
			for _, r := range res.Readings {
				got[r.Key] = r.Value
			}
			if c.wantErr {
				c.want = map[string]float64{}
			}
			relaytest.Equal(t, "the readings", got, c.want)
		})
	}
}

func TestCompileRefuses(t *testing.T) {
	for _, c := range []struct{ name, codec, source, want string }{
		{"an unknown codec", "basic", "10 PRINT", "basic: codec: is unknown; the codecs are json, cayenne_lpp, senml, expr, javascript"},
		{"an invalid expression", Expr, "a = 1 +", "expr: a: line 1, column"},
		{"an expression without a source", Expr, "", "expr: line 1, column 1: the source has no expression"},
		{"invalid JavaScript", JavaScript, "function f() {\n  return 1 +;\n}", "javascript: line 2, column 13: Unexpected token ;"},
		{"cayenne_lpp with a source", CayenneLPP, "x", "cayenne_lpp: source: is not used by this codec"},
	} {
		t.Run(c.name, func(t *testing.T) {
			d, err := testCatalog.Compile(c.codec, c.source, false)
			if !strings.HasPrefix(decoderstest.ErrorText(err), c.want) {
				t.Errorf("error = %v, want %s", err, c.want)
			}
			if d != nil {
				t.Errorf("decoder = %T with an error, want nil", d)
			}
		})
	}
}

func TestEveryCodecCompiles(t *testing.T) {
	for _, name := range Names() {
		source := ""
		if TakesSource(name) {
			source = map[string]string{Expr: "a = 1", JavaScript: "function decodeUplink(input) { return {data: {}}; }"}[name]
		}
		if _, err := testCatalog.Compile(name, source, false); err != nil {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// testCatalog runs JavaScript in the test process.
var testCatalog = Catalog{JavaScript: func(source string) (decoders.Decoder, error) {
	c, err := javascript.Compile(source)
	if err == nil {
		err = c.Check(&javascript.Interrupter{})
	}
	return c, err
}}

func TestValuesInAdditionToThePayloadAreAdded(t *testing.T) {
	f := decoders.Frame{Payload: []byte{7}, HasFPort: true, FPort: 2, BesidePayload: true, Object: map[string]any{"a": 1.0, "b": 2.0}}
	for _, c := range []struct {
		codec, source string
		want          []float64
	}{
		{JavaScript, "function decodeUplink(input) { return {data: {a: input.bytes[0]}}; }", []float64{7, 2}},
		{Expr, "a = bytes[0]", []float64{7, 2}},
		{JSON, "", []float64{1, 2}},
	} {
		d, err := testCatalog.Compile(c.codec, c.source, false)
		relaytest.NoError(t, err)
		res, err := d.Decode(&f)
		relaytest.NoError(t, err)
		var got []float64
		for _, r := range res.Readings {
			got = append(got, r.Value)
		}
		relaytest.Equal(t, c.codec, got, c.want)
	}
}

func TestValuesInAdditionToThePayloadAreAddedInBatches(t *testing.T) {
	c := Catalog{JavaScript: func(string) (decoders.Decoder, error) { return payloadBytes{}, nil }}
	d, err := c.Compile(JavaScript, "source", false)
	relaytest.NoError(t, err)
	decoded, err := d.(decoders.BatchDecoder).DecodeBatch(t.Context(), 1, []*decoders.Frame{
		{Object: map[string]any{"b": 1.0}},
		{Payload: []byte{7}, BesidePayload: true, Object: map[string]any{"a": 1.0, "b": 2.0}},
	}, 0)
	relaytest.NoError(t, err)
	var got []string
	for _, result := range decoded {
		for _, r := range result.Readings {
			got = append(got, fmt.Sprint(r.Key, "=", r.Value))
		}
	}
	relaytest.Equal(t, "readings", got, []string{"b=1", "a=7", "b=2"})
}

func TestExcessValuesInAdditionToThePayloadAreReported(t *testing.T) {
	c := Catalog{JavaScript: func(string) (decoders.Decoder, error) { return payloadBytes{}, nil }}
	d := relaytest.Must(c.Compile(JavaScript, "source", false))(t)
	object := map[string]any{}
	for i := range values.MaxReadings + 1 {
		object[fmt.Sprint("key", i)] = 1.0
	}
	decoded, err := d.(decoders.BatchDecoder).DecodeBatch(t.Context(), 1, []*decoders.Frame{{Payload: []byte{7}, BesidePayload: true, Object: object}}, 0)
	relaytest.NoError(t, err)
	if !strings.Contains(decoded[0].Excess, "the others are ignored") {
		t.Errorf("excess = %q, want a note about omitted values", decoded[0].Excess)
	}
}

// payloadBytes decodes the first byte of each payload as the reading a.
type payloadBytes struct{ decoders.Decoder }

func (payloadBytes) DecodeBatch(_ context.Context, _ int64, frames []*decoders.Frame, _ time.Duration) ([]decoders.Decoded, error) {
	var results []decoders.Decoded
	for _, f := range frames {
		results = append(results, decoders.Decoded{Result: decoders.Result{Readings: []decoders.Reading{{Key: "a", Value: float64(f.Payload[0])}}}})
	}
	return results, nil
}

func TestTemplatesDecodeAnExample(t *testing.T) {
	frames := map[string]decoders.Frame{
		"json":        {Object: map[string]any{"temperature": 20.5}},
		"cayenne_lpp": {Payload: []byte{3, 103, 1, 16}},
		"senml":       {Payload: []byte(`[{"n":"temperature","v":20.5}]`)},
		"expr":        {Payload: []byte{8, 2, 100}},
		"javascript":  {Payload: []byte{8, 2, 100}},
	}
	for _, template := range Templates() {
		d, err := testCatalog.Compile(template.Codec, template.Source, template.UseRawPayload)
		relaytest.NoError(t, err)
		frame := frames[template.ID]
		result, err := d.Decode(&frame)
		relaytest.NoError(t, err)
		if len(result.Readings) == 0 {
			t.Errorf("%s: no readings", template.ID)
		}
		delete(frames, template.ID)
	}
	relaytest.Equal(t, "the number of codecs without a template", len(frames), 0)
}
