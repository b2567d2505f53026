package iot

import (
	"encoding/json"
	"math"
	"math/rand/v2"
	"strconv"
	"testing"
	"time"
)

func TestNumbersAreRoundedToTwelveDigits(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	for range 100_000 {
		v := (r.Float64() - 0.5) * math.Pow(10, float64(r.IntN(30)-10))
		got := round(v) // twelve digits, at most half a digit from v
		reparsed, err := strconv.ParseFloat(strconv.FormatFloat(got, 'e', 11, 64), 64)
		if digit := math.Pow(10, math.Floor(math.Log10(math.Abs(v)))-11); err != nil || reparsed != got || math.Abs(got-v) > 0.51*digit {
			t.Fatalf("round(%v) = %v", v, got)
		}
	}
	for v, want := range map[float64]float64{
		0: 0, 1: 1, 9.99999999999999: 10, 999999999.9999999: 1e9, 0.1 + 0.2: 0.3, 21.299999999999997: 21.3, -1e21: -1e21,
		math.MaxFloat64: 1.79769313486e308, 5e-324: 5e-324,
	} {
		if got := round(v); got != want {
			t.Errorf("round(%v) = %v, want %v", v, got, want)
		}
	}
}

// An operation creates the response with a thousand readings, without the query of the store.
func BenchmarkReadingRows(b *testing.B) {
	points := make([]Point, 1000)
	for i := range points {
		points[i] = Point{SensorID: "3f0e0f57", DeviceID: "91c0d1aa", Key: "temperature", Type: "temp", Value: float64(i) / 8, Time: time.Unix(1.77e9+int64(i)*60, 0)}
	}
	types := map[string]SensorType{"temp": {Name: "Temperature", MetricUnits: "°C", ImperialUnits: "°F"}}
	b.ReportAllocs()
	for b.Loop() {
		if _, err := json.Marshal(ReadingRows(points, types, Metric)); err != nil {
			b.Fatal(err)
		}
	}
}
