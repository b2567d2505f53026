package javascript

import (
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/penstock/penstock/decoders"
	"github.com/penstock/penstock/decoders/script"
	"github.com/penstock/penstock/relay/relaytest"
)

// benchFrame returns a frame for testdata/bench.js.
func benchFrame() *decoders.Frame {
	return &decoders.Frame{FPort: 85, Payload: []byte{
		0x01, 0x75, 92, 0x03, 0x67, 0x0a, 0x01, 0x04, 0x68, 101, 0x07, 0x7d, 0xe7, 0x04, 0x09, 0x73, 0x6c, 0x27,
		0x06, 0xcb, 2, 0x0a, 0x00, 1, 0x08, 0x7d, 0x32, 0x00, 0x0b, 0x7d, 0x0c, 0x00, 0x05, 0x6a, 7,
	}}
}

func typicalCodec(t testing.TB) *Codec {
	t.Helper()
	source, err := os.ReadFile("testdata/bench.js")
	relaytest.NoError(t, err)
	js, err := Compile(string(source))
	relaytest.NoError(t, err)
	return js
}

// Most allocations of a call are made for its realm.
func TestAllocationsOfATypicalCodec(t *testing.T) {
	js, f := typicalCodec(t), benchFrame()
	if n := testing.AllocsPerRun(100, func() { _, _ = js.Decode(f) }); n > 400 {
		t.Errorf("%v allocations per call, want at most 400", n)
	}
}

// BenchmarkDecode decodes a payload of ten values with a codec of 3 KB in the
// style of the vendors, and with equivalent expressions. It reports
// the median and the 99th percentile in addition to the mean.
func BenchmarkDecode(b *testing.B) {
	js := typicalCodec(b)
	ex, err := script.Compile(strings.Join([]string{
		"battery = bytes[2]", "temperature = int16le(bytes, 5) / 10", "humidity = bytes[9] / 2", "co2 = uint16le(bytes, 12)", "pressure = uint16le(bytes, 16) / 10",
		"light = bytes[20]", "door = bytes[23] == 0 ? 'close' : 'open'", "tvoc = uint16le(bytes, 26)", "pm2_5 = uint16le(bytes, 30)", "activity = bytes[34]",
	}, "\n"))
	if err != nil {
		b.Fatal(err)
	}
	f := benchFrame()
	for _, c := range []struct {
		name  string
		codec decoders.Decoder
	}{{"javascript", js}, {"expr", ex}} {
		b.Run(c.name, func(b *testing.B) {
			if res, err := c.codec.Decode(f); err != nil || len(res.Readings) != 10 {
				b.Fatalf("%d readings, error %v", len(res.Readings), err)
			}
			var durations []time.Duration
			b.ReportAllocs()
			for b.Loop() {
				start := time.Now()
				if _, err := c.codec.Decode(f); err != nil {
					b.Fatal(err)
				}
				durations = append(durations, time.Since(start))
			}
			slices.Sort(durations)
			b.ReportMetric(float64(durations[len(durations)/2].Nanoseconds()), "p50-ns")
			b.ReportMetric(float64(durations[len(durations)*99/100].Nanoseconds()), "p99-ns")
		})
	}
}

// BenchmarkCompile compiles the same codec. The gateway does so when a codec is saved.
func BenchmarkCompile(b *testing.B) {
	source, err := os.ReadFile("testdata/bench.js")
	if err != nil {
		b.Fatal(err)
	}
	for b.Loop() {
		if _, err := Compile(string(source)); err != nil {
			b.Fatal(err)
		}
	}
}
