package decimal_test

import (
	"encoding/json"
	"fmt"
	"math"
	"strings"
	"testing"

	"github.com/penstock/penstock/decoders/decimal"
)

func TestInt(t *testing.T) {
	for text, want := range map[string]string{
		"0": "0", "-0": "0", "0.0": "0", "0e5": "0", "0e-400": "0", "7": "7", "-7": "-7", "1.0": "1", "10": "10", "100.00": "100", "1e3": "1000",
		"1E+3": "1000", "1.5e1": "15", "120e-1": "12", "1e16": "10000000000000000", "9223372036854775807": "9223372036854775807",
		"-9223372036854775808": "-9223372036854775808", "0.00000000000000000001e20": "1",
	} {
		if n, ok := decimal.Int(text); fmt.Sprint(n) != want || !ok {
			t.Errorf("%q: got %d, %t, want %s", text, n, ok, want)
		}
	}
	for _, text := range []string{
		"1.5", "1e-400", "1e-1", "12e-1", "9223372036854775808", "1e19", "1e400", "1e99999999999999999999", "1e-99999999999999999999",
	} {
		if n, ok := decimal.Int(text); ok {
			t.Errorf("Int(%q) = %d, want an error", text, n)
		}
	}
}

func TestDigits(t *testing.T) {
	for text, want := range map[string]int64{"0": 0, "007": 7, "-7": -7, "9223372036854775807": math.MaxInt64} {
		if n, err := decimal.PlainInt(text); n != want || err != nil {
			t.Errorf("%q: got %d, %v, want %d", text, n, err, want)
		}
	}
	for _, text := range []string{"", "+5", "+-5", "1_0", "0x10", "1e3", "1.0", " 5", "9223372036854775808"} {
		if n, err := decimal.PlainInt(text); err == nil {
			t.Errorf("Int(%q) = %d, want an error", text, n)
		}
	}
}

func TestFloat(t *testing.T) {
	for text, want := range map[string]float64{
		"0": 0, "-0.0": 0, "0e-400": 0, "-2.0943": -2.0943, "1e308": 1e308, "5e-324": 5e-324, "0.1": 0.1, "100": 100,
	} {
		if v, ok := decimal.Float(text); v != want || !ok {
			t.Errorf("%q: got %g, %t, want %g", text, v, ok, want)
		}
	}
	for _, text := range []string{"1e-400", "0.0001e-400", "1e309", "-1e400"} {
		if v, ok := decimal.Float(text); ok {
			t.Errorf("Float(%q) = %g, want an error", text, v)
		}
	}
}

// TestNotationsOutsideJSONAreRefused tests numbers that strconv accepts and JSON does not.
func TestNotationsOutsideJSONAreRefused(t *testing.T) {
	for _, text := range []string{
		"", "-", "+5", "0x10", "0x1p4", "0b1", "0o7", "1_0", "1_000.5", "Inf", "-inf", "infinity", "NaN", "1e", "1e+", "1e1.5", ".5", "5.", "007", "-01",
		" 1", "1 ", "1,5", "--1", "1e1e1", "١",
	} {
		if v, ok := decimal.Float(text); ok {
			t.Errorf("Float(%q) = %g, want an error", text, v)
		}
		if n, ok := decimal.Int(text); ok {
			t.Errorf("Int(%q) = %d, want an error", text, n)
		}
	}
}

func FuzzDecimal(f *testing.F) {
	for _, seed := range []string{"0", "-1.5e3", "1e16", "0x1p4", "1_0", "1e-400", "00", ".5", "1e99999999999"} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, text string) {
		isNumber := json.Valid([]byte(text)) && strings.Trim(text, "+-.eE0123456789") == ""
		v, isFloat := decimal.Float(text)
		n, isInt := decimal.Int(text)
		if (isFloat || isInt) && !isNumber {
			t.Fatalf("%q is accepted, but is not a JSON number", text)
		}
		var want float64
		if isNumber && json.Unmarshal([]byte(text), &want) == nil && (want != 0 && (v != want || !isFloat) || isInt && isFloat && math.Abs(v-float64(n)) > math.Abs(v)*1e-15) {
			t.Fatalf("%q: got %g, %t and %d, %t, want %g", text, v, isFloat, n, isInt, want)
		}
	})
}
