package iot

import (
	"encoding/json"
	"math"
	"math/rand/v2"
	"strconv"
	"testing"
	"time"
)

func TestNumbersAreRoundedAsTheirDigitsSay(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 2))
	for range 100_000 {
		v := (r.Float64() - 0.5) * math.Pow(10, float64(r.IntN(30)-10))
		got := rounded(v) // has twelve digits, and differs from v by at most half a digit
		again, err := strconv.ParseFloat(strconv.FormatFloat(got, 'e', 11, 64), 64)
		if digit := math.Pow(10, math.Floor(math.Log10(math.Abs(v)))-11); err != nil || again != got || math.Abs(got-v) > 0.51*digit {
			t.Fatalf("%v became %v", v, got)
		}
	}
	for v, want := range map[float64]float64{
		0: 0, 1: 1, 9.99999999999999: 10, 999999999.9999999: 1e9, 0.1 + 0.2: 0.3, 21.299999999999997: 21.3, -1e21: -1e21,
		math.MaxFloat64: 1.79769313486e308, 5e-324: 5e-324,
	} {
		if got := rounded(v); got != want {
			t.Errorf("%v became %v, want %v", v, got, want)
		}
	}
}

// One operation creates the response of a thousand readings, without the query of the store.
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
