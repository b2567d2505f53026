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

// uplinks are the radio data of 5,000 frames as ChirpStack reports it.
func uplinks(at time.Time) iot.Readings {
	var b iot.Readings
	rssi, snr := -97.0, 7.25
	for i := range 5000 {
		b.Radio = append(b.Radio, iot.RadioData{
			Account: 1, DeviceID: fmt.Sprintf("01jd8q9x7v3k5m2n4p6r8%05d", i), Identifier: fmt.Sprintf("24e124136b5%05x", i), Time: at,
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
			b.Fatal(len(e.lines))
		}
	}
}

// TestEncodingAllocatesABatch holds that lines are written into one buffer and one body.
func TestEncodingAllocatesABatch(t *testing.T) {
	at := time.Unix(1740830400, 123456789)
	for name, batch := range map[string]iot.Readings{"points": iottest.Load(at), "uplinks": uplinks(at)} {
		allocs := testing.AllocsPerRun(10, func() {
			e := encode(batch, nil)
			if e.body(e.lines) == "" {
				t.Fatal("no lines")
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
	at := time.Unix(1740830400, 0)
	batch := iottest.Load(at)
	n := 0
	for b.Loop() {
		n++
		for i := range batch.Points {
			batch.Points[i].Time = at.Add(time.Duration(n) * time.Second)
		}
		if refused, err := s.Write(b.Context(), batch); err != nil || len(refused) > 0 {
			b.Fatal(refused, err)
		}
	}
	b.ReportMetric(5000*float64(n)/b.Elapsed().Seconds(), "points/s")
}

// BenchmarkReadings reads what a query returns at most of a device with five sensors,
// from a real server, in each format of its response.
func BenchmarkReadings(b *testing.B) {
	server := influxtest.Shared(b)
	from := time.Unix(1740830400, 123456789)
	query := iot.Query{Account: 1, DeviceID: "d", From: from, To: from.Add(24 * time.Hour), Limit: MaxReadings}
	for name, accept := range map[string]string{"msgpack": msgpackType, "json": "application/json"} {
		b.Run(name, func(b *testing.B) {
			s := relaytest.Must(New(Options{URL: server.URL, Bucket: server.NewDatabase(b), Transport: accepts(accept)}))(b)
			var all iot.Readings
			for i := range 5 * query.Limit {
				all.Points = append(all.Points, iot.Point{
					Account: 1, Type: "temperature", DeviceID: "d", Identifier: "24e124136b502217", SensorID: fmt.Sprintf("d.%d", i%5),
					Key: "temperature", Time: from.Add(time.Duration(i/5) * 30 * time.Second), Value: 20 + float64(i%1000)/10,
				})
			}
			relaytest.Must(s.Write(b.Context(), all))(b)
			b.ReportAllocs()
			for b.Loop() {
				points := relaytest.Must(s.Readings(b.Context(), query))(b)
				relaytest.Equal(b, "the number of points", len(points), MaxReadings)
			}
		})
	}
}

// accepts is a transport that requests a format where MessagePack was requested.
type accepts string

func (a accepts) RoundTrip(r *http.Request) (*http.Response, error) {
	if r.Header.Get("Accept") == msgpackType {
		r.Header.Set("Accept", string(a))
	}
	return http.DefaultTransport.RoundTrip(r)
}
