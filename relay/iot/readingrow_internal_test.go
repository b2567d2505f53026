package iot

import (
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
		got := rounded(v) // its digits are twelve, and it lies half a digit off at most
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

func TestDatesAreWrittenAsTimeWritesThem(t *testing.T) {
	r := rand.New(rand.NewPCG(1, 3))
	for range 10_000 {
		at := time.Unix(r.Int64N(1<<38)-1<<36, r.Int64N(1e9)).In(time.FixedZone("", r.IntN(7200)))
		if got, want := dateOf(at), at.UTC().Format(TimeFormat); got != want {
			t.Fatalf("%v: %s, want %s", at, got, want)
		}
	}
	if got := dateOf(time.Time{}); got != "0001-01-01 00:00:00" {
		t.Error(got)
	}
}
