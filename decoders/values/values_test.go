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
	shared := []any{}
	for range 60 { // 2^60 paths through 60 lists
		shared = []any{shared, shared}
	}
	deep := any(1.0)
	for range 500 {
		deep = []any{deep}
	}
	many := make([]any, MaxReadings+1)
	for i := range many {
		many[i] = float64(i)
	}
	for name, v := range map[string]any{"a list within itself many times": shared, "a list very deep": deep, "very many values": many} {
		var res decoders.Result
		Append(&res, "k", v)
		if len(res.Readings) > MaxReadings || len(res.Warnings) > maxWarnings || res.Excess == "" && len(res.Warnings) == 0 {
			t.Errorf("%s: %d readings, excess %q, warnings %q", name, len(res.Readings), res.Excess, res.Warnings)
		}
	}
	for n, excess := range map[int]bool{MaxReadings: false, MaxReadings + 1: true} {
		var res decoders.Result
		Append(&res, "k", many[:n])
		if len(res.Readings) != MaxReadings || (res.Excess != "") != excess {
			t.Errorf("of %d values %d were read, excess %q", n, len(res.Readings), res.Excess)
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
		t.Errorf("%d, of a body at most %d", maxDepth, jsonbody.MaxDepth)
	}
}

// FuzzAppend checks that readings are finite, named and limited, and the same
// each time.
func FuzzAppend(f *testing.F) {
	f.Add([]byte(`{"a":{"b":[1,"x",true,null,1e400]},"":2}`))
	f.Add([]byte(`[[[[1]]]]`))
	f.Fuzz(func(t *testing.T, body []byte) {
		r := jsonbody.New(body)
		v := r.Any()
		var one, two decoders.Result
		Append(&one, "", v)
		Append(&two, "", v)
		if !reflect.DeepEqual(one, two) {
			t.Fatal("two readings differ")
		}
		if len(one.Readings) > MaxReadings || len(one.Warnings) > maxWarnings {
			t.Fatal("unbounded")
		}
		for _, x := range one.Readings {
			if x.Key == "" || math.IsNaN(x.Value) || math.IsInf(x.Value, 0) || len(x.Text) > MaxText {
				t.Fatalf("the reading %q is out of bounds: value %v, a text of %d bytes", x.Key, x.Value, len(x.Text))
			}
		}
	})
}
