package values

import (
	"encoding/json"
	"math"
	"reflect"
	"strings"
	"testing"

	"github.com/penstock/penstock/decoders"
	"github.com/penstock/penstock/decoders/jsonbody"
)

func TestOutputIsBounded(t *testing.T) {
	sharedList := []any{}
	for range 60 { // 2^60 paths through 60 lists
		sharedList = []any{sharedList, sharedList}
	}
	deepList := any(1.0)
	for range 500 {
		deepList = []any{deepList}
	}
	numbers := make([]any, MaxReadings+1)
	for i := range numbers {
		numbers[i] = float64(i)
	}
	for name, v := range map[string]any{"a list with 2^60 paths": sharedList, "a deeply nested list": deepList, "too many values": numbers} {
		var res decoders.Result
		Append(&res, "k", v)
		if len(res.Readings) > MaxReadings || len(res.Warnings) > maxWarnings || res.Excess == "" && len(res.Warnings) == 0 {
			t.Errorf("%s: %d readings, excess %q, warnings %q", name, len(res.Readings), res.Excess, res.Warnings)
		}
	}
	for n, wantExcess := range map[int]bool{MaxReadings: false, MaxReadings + 1: true} {
		var res decoders.Result
		Append(&res, "k", numbers[:n])
		if len(res.Readings) != MaxReadings || (res.Excess != "") != wantExcess {
			t.Errorf("%d values: got %d readings and excess %q", n, len(res.Readings), res.Excess)
		}
	}
	var res decoders.Result
	Append(&res, "k", strings.Repeat("é", MaxText))
	if len(res.Readings[0].Text) > MaxText || !json.Valid([]byte(`"`+res.Readings[0].Text+`"`)) || len(res.Warnings) != 1 {
		t.Errorf("a long text: %d bytes, warnings %q", len(res.Readings[0].Text), res.Warnings)
	}
}

func TestJSONBodiesAreNeverTooDeep(t *testing.T) {
	if maxDepth != 2*jsonbody.MaxDepth {
		t.Errorf("maxDepth = %d, want twice jsonbody.MaxDepth, %d", maxDepth, jsonbody.MaxDepth)
	}
}

// FuzzAppend checks that readings are finite, named and limited, and that two calls return
// the same readings.
func FuzzAppend(f *testing.F) {
	f.Add([]byte(`{"a":{"b":[1,"x",true,null,1e400]},"":2}`))
	f.Add([]byte(`[[[[1]]]]`))
	f.Fuzz(func(t *testing.T, body []byte) {
		r := jsonbody.New(body)
		v := r.Any()
		var firstResult, secondResult decoders.Result
		Append(&firstResult, "", v)
		Append(&secondResult, "", v)
		if !reflect.DeepEqual(firstResult, secondResult) {
			t.Fatal("two calls return different results")
		}
		if len(firstResult.Readings) > MaxReadings || len(firstResult.Warnings) > maxWarnings {
			t.Fatalf("%d readings and %d warnings, want at most %d and %d", len(firstResult.Readings), len(firstResult.Warnings), MaxReadings, maxWarnings)
		}
		for _, reading := range firstResult.Readings {
			if reading.Key == "" || math.IsNaN(reading.Value) || math.IsInf(reading.Value, 0) || len(reading.Text) > MaxText {
				t.Fatalf("the reading %q is out of bounds: value %v, a text of %d bytes", reading.Key, reading.Value, len(reading.Text))
			}
		}
	})
}
