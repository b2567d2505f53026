package influx

import (
	"fmt"
	"net/http"
	"testing"
	"time"

	"github.com/penstock/penstock/delivery/influx/influxtest"
	"github.com/penstock/penstock/relay/iot"
	"github.com/penstock/penstock/relay/iot/iottest"
	"github.com/penstock/penstock/relay/relaytest"
)

func BenchmarkEncode5000Points(b *testing.B) {
	benchEncode(b, iottest.Load(time.Unix(1740830400, 123456789)))
	b.ReportMetric(5000*float64(b.N)/b.Elapsed().Seconds(), "points/s")
}

// uplinks returns the radio data of 5,000 frames of ChirpStack.
func uplinks(t time.Time) iot.Readings {
	var b iot.Readings
	rssi, snr := -97.0, 7.25
	for i := range 5000 {
		b.Radio = append(b.Radio, iot.RadioData{
			Account: 1, DeviceID: fmt.Sprintf("01jd8q9x7v3k5m2n4p6r8%05d", i), Identifier: fmt.Sprintf("24e124136b5%05x", i), Time: t,
			FCnt: new(int64(i)), FPort: new(int64(2)), Gateways: new(int64(1)), RSSI: &rssi, SNR: &snr, Frame: true, Name: "Cold store, north",
		})
	}
	return b
}

func BenchmarkEncode5000Uplinks(b *testing.B) {
	benchEncode(b, uplinks(time.Unix(1740830400, 123456789)))
}

func benchEncode(b *testing.B, batch iot.Readings) {
	b.ReportAllocs()
	for b.Loop() {
		if e := encode(batch, nil); len(e.lines) != 5000 {
			b.Fatalf("%d lines, want 5000", len(e.lines))
		}
	}
}

// TestEncodingAllocatesOneBufferAndOneBody counts the allocations of a batch.
func TestEncodingAllocatesOneBufferAndOneBody(t *testing.T) {
	now := time.Unix(1740830400, 123456789)
	for name, batch := range map[string]iot.Readings{"points": iottest.Load(now), "uplinks": uplinks(now)} {
		allocs := testing.AllocsPerRun(10, func() {
			e := encode(batch, nil)
			if e.body(e.lines) == "" {
				t.Fatal("the batch has no lines")
			}
		})
		if allocs > 10 {
			t.Errorf("%.0f allocations for 5,000 %s, want at most 10", allocs, name)
		}
	}
}

func BenchmarkWrite5000Points(b *testing.B) {
	server := influxtest.Shared(b)
	s, err := New(Options{URL: server.URL, Bucket: server.NewDatabase(b)})
	relaytest.NoError(b, err)
	start := time.Unix(1740830400, 0)
	batch := iottest.Load(start)
	n := 0
	for b.Loop() {
		n++
		for i := range batch.Points {
			batch.Points[i].Time = start.Add(time.Duration(n) * time.Second)
		}
		if refused, err := s.Write(b.Context(), batch); err != nil || len(refused) > 0 {
			b.Fatalf("refused points = %v, error %v, want none", refused, err)
		}
	}
	b.ReportMetric(5000*float64(n)/b.Elapsed().Seconds(), "points/s")
}

// BenchmarkReadings reads the maximum number of points of a device with five sensors from a real
// server, in each format of the response.
func BenchmarkReadings(b *testing.B) {
	server := influxtest.Shared(b)
	start := time.Unix(1740830400, 123456789)
	query := iot.Query{Account: 1, DeviceID: "d", From: start, To: start.Add(24 * time.Hour), Limit: MaxReadings}
	for name, accept := range map[string]string{"msgpack": msgpackType, "json": "application/json"} {
		b.Run(name, func(b *testing.B) {
			s := relaytest.Must(New(Options{URL: server.URL, Bucket: server.NewDatabase(b), Transport: acceptTransport(accept)}))(b)
			var batch iot.Readings
			for i := range 5 * query.Limit {
				batch.Points = append(batch.Points, iot.Point{
					Account: 1, Type: "temperature", DeviceID: "d", Identifier: "24e124136b502217", SensorID: fmt.Sprintf("d.%d", i%5),
					Key: "temperature", Time: start.Add(time.Duration(i/5) * 30 * time.Second), Value: 20 + float64(i%1000)/10,
				})
			}
			relaytest.Must(s.Write(b.Context(), batch))(b)
			b.ReportAllocs()
			for b.Loop() {
				points := relaytest.Must(s.Readings(b.Context(), query))(b)
				relaytest.Equal(b, "the number of points", len(points), MaxReadings)
			}
		})
	}
}

// acceptTransport requests a media type instead of MessagePack.
type acceptTransport string

func (a acceptTransport) RoundTrip(r *http.Request) (*http.Response, error) {
	if r.Header.Get("Accept") == msgpackType {
		r.Header.Set("Accept", string(a))
	}
	return http.DefaultTransport.RoundTrip(r)
}
