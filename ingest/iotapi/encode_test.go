package iotapi

import (
	"math"
	"strings"
	"testing"

	"github.com/penstock/penstock/ingest/httpd"
	"github.com/penstock/penstock/relay/iot"
	"github.com/penstock/penstock/relay/relaytest"
)

// FuzzEncode compares the encoding of readings with that of encoding/json.
func FuzzEncode(f *testing.F) {
	for _, s := range []string{"", "plain", "Grüße 🚰", `"quoted" \ back`, "<&>\u2028\u2029", "tab\t\x00\x7f", "\xff\xe2", "\xe2\x82", "%°C"} {
		for _, v := range []float64{0, math.Copysign(0, -1), 1, -21.5, 1e-6, 9.9e-7, 1e21, 9.9e20, -1e300, 5e-324, math.MaxFloat64, 1.0 / 3} {
			f.Add(s, v)
		}
	}
	encode := httpd.New(httpd.Options{}).Config().JSONEncoder
	f.Fuzz(func(t *testing.T, s string, v float64) {
		if math.IsNaN(v) || math.IsInf(v, 0) {
			return
		}
		record := iot.ReadingRow{SensorID: s, DeviceID: s + "d", Key: "k" + s, Name: s, Value: &v, Text: &s, ReadingDate: "2026-03-01 12:00:00", MetricUnits: s, ImperialUnits: s}
		blank := record
		blank.Value, blank.Text = nil, nil
		writeRecord, writeAggregate := recordWriter(), aggregateWriter()
		for _, r := range []iot.ReadingRow{record, blank, {Text: &s}, record} {
			if got, want := encodings(t, encode, &r, writeRecord); got != want {
				t.Errorf("\n got %s\nwant %s", got, want)
			}
		}
		full := iot.AggregateRow{SensorID: s, Key: s, Name: s, ReadingDate: s, Value: &v, Min: &v, Ave: &v, Max: &v, MetricUnits: s, ImperialUnits: s}
		for _, r := range []iot.AggregateRow{full, full, {Name: s}, {Value: &v}} {
			if got, want := encodings(t, encode, &r, writeAggregate); got != want {
				t.Errorf("\n got %s\nwant %s", got, want)
			}
		}
	})
}

// encodings returns the record as write and as encode encode it.
func encodings[T any](t *testing.T, encode func(any) ([]byte, error), r *T, write func([]byte, *T) ([]byte, error)) (got, want string) {
	t.Helper()
	b, err := encode(r)
	relaytest.NoError(t, err)
	written, err := write(nil, r)
	relaytest.NoError(t, err)
	return string(written), strings.TrimSuffix(string(b), "\n")
}
