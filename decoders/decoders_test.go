package decoders

import (
	"testing"

	"github.com/penstock/penstock/relay/relaytest"
)

func TestNormalizeDevEUI(t *testing.T) {
	for _, c := range []struct {
		name, text, want string
		ok               bool
	}{
		{"lower case", "a84041d2c5182f01", "a84041d2c5182f01", true},
		{"upper case", "A84041D2C5182F01", "a84041d2c5182f01", true},
		{"colons", "a8:40:41:d2:c5:18:2f:01", "a84041d2c5182f01", true},
		{"hyphens and blanks", "A840-41D2 C518-2F01", "a84041d2c5182f01", true},
		{"dots", "a840.41d2.c518.2f01", "a84041d2c5182f01", true},
		{"dots in pairs", "A8.40.41.D2.C5.18.2F.01", "a84041d2c5182f01", true},
		{"dots between groups of eight digits", "a84041d2.c5182f01", "", false},
		{"too short", "a84041d2c5182f0", "", false},
		{"too long", "a84041d2c5182f011", "", false},
		{"base64", "qEBB0sUYLwE=", "", false},
		{"a letter after f", "g84041d2c5182f01", "", false},
		{"an empty string", "", "", false},
	} {
		t.Run(c.name, func(t *testing.T) {
			got, ok := NormalizeDevEUI(c.text)
			relaytest.Equal(t, "the devEUI", got, c.want)
			relaytest.Equal(t, "whether it is valid", ok, c.ok)
		})
	}
}

// FuzzNormalizeDevEUI checks that a normalized devEUI is normalized to itself.
func FuzzNormalizeDevEUI(f *testing.F) {
	f.Add("A8:40:41:D2:C5:18:2F:01")
	f.Fuzz(func(t *testing.T, s string) {
		got, ok := NormalizeDevEUI(s)
		if normalized, ok2 := NormalizeDevEUI(got); ok != ok2 || normalized != got || ok && len(got) != 16 {
			t.Fatalf("%q is normalized to %q, and that to %q", s, got, normalized)
		}
	})
}

func TestBestGateway(t *testing.T) {
	gw := func(id string, rssi, snr *float64) Gateway { return Gateway{ID: id, RSSI: rssi, SNR: snr} }
	for _, c := range []struct {
		name     string
		gateways []Gateway
		want     string
		ok       bool
	}{
		{"the highest SNR is preferred", []Gateway{gw("a", new(-50.0), new(1.0)), gw("b", new(-90.0), new(7.0))}, "b", true},
		{"for equal SNR the highest RSSI is preferred", []Gateway{gw("a", new(-90.0), new(7.0)), gw("b", new(-50.0), new(7.0))}, "b", true},
		{"a gateway with an SNR is preferred to one without", []Gateway{gw("a", new(-50.0), nil), gw("b", new(-90.0), new(-9.0))}, "b", true},
		{"a gateway without SNR and RSSI", []Gateway{gw("a", nil, nil)}, "", false},
		{"no gateways", nil, "", false},
	} {
		t.Run(c.name, func(t *testing.T) {
			f := Frame{Gateways: c.gateways}
			got, ok := f.BestGateway()
			relaytest.Equal(t, "the gateway", got.ID, c.want)
			relaytest.Equal(t, "whether a gateway is found", ok, c.ok)
		})
	}
}

func TestErrorText(t *testing.T) {
	for want, e := range map[string]Error{
		"cayenne_lpp: channel_3: offset 4: unknown type 153": {"cayenne_lpp", "channel_3", 4, "unknown type 153"},
		"tts-v3: is empty": {"tts-v3", "", -1, "is empty"},
	} {
		relaytest.Equal(t, "the text", e.Error(), want)
	}
}
