package iot

import (
	"encoding/json"
	"math"
	"testing"

	"github.com/penstock/penstock/relay"
)

func FuzzDeviceChange(f *testing.F) {
	for _, seed := range []string{
		"", "-2.0943", "1e400", "0x1p-2", "NaN", "1_000", "{}", `{"a":{"b":[1e9,"\u0000"]}}`, `{"a":`, "[]", "null", " {} ", `{"k":1e999}`,
	} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, s string) {
		var d Device
		p := relay.Problems{}
		DeviceChange{Longitude: &s, Altitude: &s, ParserParams: &s}.apply(p, &d)
		if v := d.Longitude; v != nil && (math.IsNaN(*v) || math.Abs(*v) > 180) {
			t.Errorf("longitude %v", *v)
		}
		if v := d.Altitude; v != nil && (math.IsNaN(*v) || math.IsInf(*v, 0)) {
			t.Errorf("altitude %v", *v)
		}
		var params map[string]any
		if d.Parameters != "" && json.Unmarshal([]byte(d.Parameters), &params) != nil {
			t.Errorf("parameters %q", d.Parameters)
		}
		if len(d.Parameters) > maxParams && len(p["parser_params"]) == 0 {
			t.Errorf("%d bytes of parameters pass", len(d.Parameters))
		}
	})
}
