package jsonvalues

import (
	"math"
	"testing"
	"time"

	"github.com/penstock/penstock/decoders"
	"github.com/penstock/penstock/decoders/decoderstest"
	"github.com/penstock/penstock/relay/relaytest"
)

func num(key string, v float64) decoders.Reading { return decoders.Reading{Key: key, Value: v} }
func text(key, s string) decoders.Reading {
	return decoders.Reading{Key: key, Text: s, IsText: true}
}

func TestDecode(t *testing.T) {
	sampledAt := time.Date(2026, 2, 14, 6, 30, 0, 0, time.UTC)
	for _, c := range []struct {
		name     string
		frame    decoders.Frame
		want     []decoders.Reading
		warnings []string
		err      string
	}{
		{name: "a nested value is named by its path",
			frame: decoders.Frame{Object: map[string]any{"air": map[string]any{"temperature": 20.5}, "list": []any{map[string]any{"x": 1.0}, 2.0}}},
			want:  []decoders.Reading{num("air.temperature", 20.5), num("list.0.x", 1), num("list.1", 2)}},
		{name: "booleans become 0 and 1, strings become texts, and null is skipped",
			frame: decoders.Frame{Object: map[string]any{"a": true, "b": false, "c": "21.5", "d": nil}},
			want:  []decoders.Reading{num("a", 1), num("b", 0), text("c", "21.5")}},
		{name: "numbers that are not finite are refused",
			frame:    decoders.Frame{Object: map[string]any{"a": math.Inf(1), "b": math.NaN(), "c": 1.0}},
			want:     []decoders.Reading{num("c", 1)},
			warnings: []string{"a: is not a finite number", "b: is not a finite number"}},
		{name: "samples keep their own times",
			frame: decoders.Frame{Samples: []decoders.Reading{{Key: "a", Value: 2, Time: sampledAt}}, Object: map[string]any{"b": 1.0}},
			want:  []decoders.Reading{{Key: "a", Value: 2, Time: sampledAt}, num("b", 1)}},
		{name: "an empty object has no readings", frame: decoders.Frame{Object: map[string]any{}, Payload: []byte{1}}},
		{name: "an empty payload has no readings", frame: decoders.Frame{}},
		{name: "a JSON payload is read", frame: decoders.Frame{Payload: []byte(`{"t":1e1}`)}, want: []decoders.Reading{num("t", 10)}},
		{name: "a binary payload needs another codec", frame: decoders.Frame{Payload: []byte{1, 2}},
			err: "json: object: is missing: the sender decoded nothing, and the payload is not JSON"},
		{name: "a payload that is a bare number needs another codec", frame: decoders.Frame{Payload: []byte("12")},
			err: "json: object: is missing: the sender decoded nothing, and the payload is not JSON"},
		{name: "ciphertext is not read", frame: decoders.Frame{Payload: []byte(`{"t":1}`), Encrypted: true}, err: "json: payload: is encrypted"},
		{name: "an empty key is refused", frame: decoders.Frame{Object: map[string]any{"": 1.0}},
			warnings: []string{"a key is empty or longer than 256 bytes"}},
	} {
		t.Run(c.name, func(t *testing.T) {
			res, err := New().Decode(&c.frame)
			relaytest.Equal(t, "the readings", res.Readings, c.want)
			relaytest.Equal(t, "the warnings", res.Warnings, c.warnings)
			relaytest.Equal(t, "the error", decoderstest.ErrorText(err), c.err)
		})
	}
}
