package netserver

import (
	"encoding/json"
	"fmt"
	"math"
	"strconv"
	"strings"
	"time"

	"github.com/penstock/penstock/decoders"
	"github.com/penstock/penstock/decoders/jsonbody"
)

func tooMany(sender string) error {
	return &decoders.Error{Format: sender, Offset: -1, Reason: fmt.Sprintf("holds more than %d frames", maxFrames)}
}

// maxSamples is how many samples of its own one frame may carry.
const maxSamples = 10_000

// excess notes that a frame has more samples than it may.
func excess(f *decoders.Frame, key string) {
	f.Excess = fmt.Sprintf("%s: a frame may carry %d samples, the rest is left out", key, maxSamples)
}

// addSample adds a value that the sender decoded. A string that is a number is
// taken for one only when the sender is known to write all values as strings. It
// reports whether it was a value: lists, objects and null are not.
func addSample(f *decoders.Frame, key string, v jsonbody.Value, t time.Time, strings bool) bool {
	r := decoders.Reading{Key: key, Time: t}
	n, number := v.Float()
	b, truth := v.Bool()
	switch {
	case number && (strings || v.Kind == jsonbody.Number):
		r.Value = n
	case truth && (strings || v.Kind == jsonbody.Bool):
		if b {
			r.Value = 1
		}
	case v.Kind == jsonbody.String:
		r.Text, r.IsText = v.String(), true
	default:
		return false
	}
	if len(f.Samples) >= maxSamples {
		excess(f, key)
	} else {
		f.Samples = append(f.Samples, r)
	}
	return true
}

// loosely gives a text that stands for a number or a truth value as that.
func loosely(s string) any {
	switch s {
	case "True", "true":
		return true
	case "False", "false":
		return false
	}
	if n, err := strconv.ParseFloat(s, 64); err == nil && !math.IsInf(n, 0) && !math.IsNaN(n) && !strings.ContainsAny(s, "_xX") {
		return n
	}
	return s
}

// stringsAsJSON writes values that came as a form, so that one parser reads
// both.
func stringsAsJSON(values map[string][]string) []byte {
	flat := make(map[string]string, len(values))
	for k, v := range values {
		if len(v) > 0 {
			flat[k] = v[0]
		}
	}
	body, _ := json.Marshal(flat) // strings always marshal
	return body
}

// within reads JSON that stands in a string, as an object.
func within(v jsonbody.Value) (object map[string]any, ok bool) {
	s := v.String()
	if s == "" || s == "null" {
		return nil, true
	}
	r := jsonbody.New([]byte(s))
	object = r.Map()
	return object, r.Close() == nil && object != nil
}
