package iotapi

import (
	"math"
	"strings"
	"testing"

	"github.com/penstock/penstock/ingest/httpd"
	"github.com/penstock/penstock/relay/iot"
	"github.com/penstock/penstock/relay/relaytest"
)

// FuzzEncode holds that readings are written as encoding/json writes them.
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
		again := record
		again.Value, again.Text = nil, nil
		ours, rows := recordWriter(), aggregateWriter()
		for _, r := range []iot.ReadingRow{record, again, {Text: &s}, record} {
			if got, want := written(t, encode, &r, ours); got != want {
				t.Errorf("\n got %s\nwant %s", got, want)
			}
		}
		all := iot.AggregateRow{SensorID: s, Key: s, Name: s, ReadingDate: s, Value: &v, Min: &v, Ave: &v, Max: &v, MetricUnits: s, ImperialUnits: s}
		for _, r := range []iot.AggregateRow{all, all, {Name: s}, {Value: &v}} {
			if got, want := written(t, encode, &r, rows); got != want {
				t.Errorf("\n got %s\nwant %s", got, want)
			}
		}
	})
}

// written is a record in our hand and in that of encoding/json.
func written[T any](t *testing.T, encode func(any) ([]byte, error), r *T, write func([]byte, *T) ([]byte, error)) (got, want string) {
	t.Helper()
	b, err := encode(r)
	relaytest.NoError(t, err)
	ours, err := write(nil, r)
	relaytest.NoError(t, err)
	return string(ours), strings.TrimSuffix(string(b), "\n")
}
