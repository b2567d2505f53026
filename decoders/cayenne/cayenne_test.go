package cayenne

import (
	"encoding/hex"
	"math"
	"strings"
	"testing"

	"github.com/penstock/penstock/decoders"
	"github.com/penstock/penstock/decoders/decoderstest"
	"github.com/penstock/penstock/relay/relaytest"
)

func TestParse(t *testing.T) {
	for _, c := range []struct {
		name, payload string
		want          map[string]float64
		err           string
	}{
		{"two temperatures", "03670110056700ff", map[string]float64{"temperature_3": 27.2, "temperature_5": 25.5}, ""},
		{"a temperature below zero and an accelerometer", "0167ffd7067104d2fb2e0000", map[string]float64{"temperature_1": -4.1, "accelerometer_6.x": 1.234, "accelerometer_6.y": -1.234, "accelerometer_6.z": 0}, ""},
		{"a position", "018806765ff2960a0003e8", map[string]float64{"gps_1.latitude": 42.3519, "gps_1.longitude": -87.9094, "gps_1.altitude": 10}, ""},
		{"digital and analog values", "000001010101020200640303ff9c", map[string]float64{"digital_in_0": 1, "digital_out_1": 1, "analog_in_2": 1, "analog_out_3": -1}, ""},
		{"light, presence, humidity and pressure", "0165ffff0266010368610473276c", map[string]float64{"luminosity_1": 65535, "presence_2": 1, "relative_humidity_3": 48.5, "barometric_pressure_4": 1009.2}, ""},
		{"a gyrometer", "0186007bff850001", map[string]float64{"gyrometer_1.x": 1.23, "gyrometer_1.y": -1.23, "gyrometer_1.z": 0.01}, ""},
		{"electricity", "0174014a02750001038003e804830000 04d2", map[string]float64{"voltage_1": 3.3, "current_2": 0.001, "power_3": 1000, "energy_4": 1.234}, ""},
		{"four-byte numbers", "0164fffffffe027600000001038200000bb804856997fa80", map[string]float64{"generic_1": 4294967294, "frequency_2": 1, "distance_3": 3, "unixtime_4": 1771567744}, ""},
		{"percentage, altitude, concentration, direction, colour and switch", "0178640279ff38037d0190048401 0e0587ff8000068e01",
			map[string]float64{"percentage_1": 100, "altitude_2": -200, "concentration_3": 400, "direction_4": 270, "colour_5.r": 255, "colour_5.g": 128, "colour_5.b": 0, "switch_6": 1}, ""},
		{"an empty payload", "", map[string]float64{}, ""},
		{"decoding stops at an unknown type", "0367011001990102", map[string]float64{"temperature_3": 27.2}, "cayenne_lpp: channel_1: offset 5: unknown type 153"},
		{"a truncated value", "03670110056700", map[string]float64{"temperature_3": 27.2}, "cayenne_lpp: temperature_5: offset 6: the payload ends within a value of 2 bytes"},
		{"a channel without a type", "0367011005", map[string]float64{"temperature_3": 27.2}, "cayenne_lpp: offset 4: the payload ends within a channel and type"},
	} {
		t.Run(c.name, func(t *testing.T) {
			readings, err := Parse(unhex(t, c.payload))
			got := map[string]float64{}
			for _, r := range readings {
				got[r.Key] = r.Value
			}
			relaytest.Equal(t, "the readings", got, c.want)
			relaytest.Equal(t, "the error", decoderstest.ErrorText(err), c.err)
		})
	}
}

func TestCiphertextIsRefused(t *testing.T) {
	res, err := New().Decode(&decoders.Frame{Payload: []byte{3, 103, 1, 16}, Encrypted: true})
	decoderstest.Refused(t, err, "cayenne_lpp", "payload", -1)
	relaytest.Equal(t, "the readings", res.Readings, nil)
}

func unhex(t *testing.T, s string) []byte {
	t.Helper()
	return relaytest.Must(hex.DecodeString(strings.ReplaceAll(s, " ", "")))(t)
}

// FuzzParse checks that encoding the readings returns the payload, so that no value is
// rounded.
func FuzzParse(f *testing.F) {
	for _, s := range []string{"03670110056700ff", "018806765ff2960a0003e8", "0186007bff850001", "0587ff8000", "0199", "05"} {
		b, _ := hex.DecodeString(s)
		f.Add(b)
	}
	f.Fuzz(func(t *testing.T, payload []byte) {
		readings, err := Parse(payload)
		if len(readings) > len(payload) {
			t.Fatal("more readings than bytes")
		}
		encoded := encode(t, payload, readings)
		if err == nil && len(encoded) != len(payload) || string(encoded) != string(payload[:len(encoded)]) {
			t.Fatalf("payload = %x, encoded readings = %x", payload, encoded)
		}
	})
}

// encode encodes readings with the channels and types of the payload.
func encode(t *testing.T, payload []byte, readings []decoders.Reading) (encoded []byte) {
	for len(readings) > 0 {
		channel, typ := payload[len(encoded)], payload[len(encoded)+1]
		encoded = append(encoded, channel, typ)
		k, ok := kinds[typ]
		if !ok {
			t.Fatalf("a reading has the unknown type %d", typ)
		}
		for _, f := range k.fields {
			n := int64(math.Round(readings[0].Value * f.scale))
			for i := f.size - 1; i >= 0; i-- {
				encoded = append(encoded, byte(n>>(8*i)))
			}
			readings = readings[1:]
		}
	}
	return encoded
}

func BenchmarkParse(b *testing.B) {
	payload, _ := hex.DecodeString("03670110056700ff0368610102014a")
	b.ReportAllocs()
	for b.Loop() {
		if _, err := Parse(payload); err != nil {
			b.Fatal(err)
		}
	}
}
