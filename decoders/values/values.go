// Package values makes readings of decoded values: maps, lists, numbers, booleans
// and texts, each named by its path, with dots between the names
// ("air.temperature", "list.0.x").
//
// Numbers become readings, booleans 0 or 1, strings text; null is left out.
// A number that is not finite is refused with a warning, and so is a text beyond
// MaxText. Readings beyond MaxReadings are the result's Excess.
package values

import (
	"cmp"
	"fmt"
	"maps"
	"math"
	"reflect"
	"slices"
	"strconv"
	"unicode/utf8"

	"github.com/penstock/penstock/decoders"
)

const (
	// MaxReadings is the largest number of readings that one frame may give.
	MaxReadings = 10_000
	// MaxText is the largest length of a text, in bytes.
	MaxText = 4096

	// maxVisits bounds the walk over values of which few are readings.
	maxVisits = 2 * MaxReadings
	// maxDepth is twice the nesting that a JSON body may have.
	maxDepth    = 128
	maxKey      = 256
	maxWarnings = 20
)

// Append adds the values within v to a result, under keys that begin with key.
// It takes maps and lists of any depth, every Go number, booleans and strings.
func Append(res *decoders.Result, key string, v any) {
	w := walk{res: res, visits: maxVisits}
	w.value(key, v, 0)
	if w.visits < 0 {
		res.Excess = fmt.Sprintf("%s: a frame may give %d readings, the rest is left out", cmp.Or(key, "the object"), MaxReadings)
	}
}

type walk struct {
	res    *decoders.Result
	visits int
}

func (w *walk) warn(text string) {
	if len(w.res.Warnings) < maxWarnings {
		w.res.Warnings = append(w.res.Warnings, text)
	}
}

func (w *walk) value(key string, v any, depth int) {
	if w.visits--; w.visits < 0 {
		return
	}
	switch v := v.(type) {
	case nil:
	case string:
		w.text(key, v)
	case bool:
		n := 0.0
		if v {
			n = 1
		}
		w.number(key, n)
	case map[string]any:
		w.object(key, v, depth)
	case []any:
		w.list(key, v, depth)
	case []int:
		for i, n := range v {
			w.value(join(key, strconv.Itoa(i)), n, depth+1)
		}
	default:
		n, ok := number(v)
		if !ok {
			w.warn(fmt.Sprintf("%s: is not a value: %T", key, v))
			return
		}
		w.number(key, n)
	}
}

// object walks by name, so that equal frames give equal results.
func (w *walk) object(key string, m map[string]any, depth int) {
	if !w.deeper(key, depth) {
		return
	}
	for _, name := range slices.Sorted(maps.Keys(m)) {
		w.value(join(key, name), m[name], depth+1)
	}
}

func (w *walk) list(key string, l []any, depth int) {
	if !w.deeper(key, depth) {
		return
	}
	for i, v := range l {
		if w.visits < 0 {
			return
		}
		w.value(join(key, strconv.Itoa(i)), v, depth+1)
	}
}

func (w *walk) deeper(key string, depth int) bool {
	if depth >= maxDepth {
		w.warn(key[:min(len(key), maxKey)] + ": is nested too deep")
		return false
	}
	return true
}

func join(key, name string) string {
	if key == "" {
		return name
	}
	return key + "." + name
}

func (w *walk) number(key string, n float64) {
	if math.IsNaN(n) || math.IsInf(n, 0) {
		w.warn(key + ": is not a finite number")
		return
	}
	w.add(decoders.Reading{Key: key, Value: n})
}

func (w *walk) text(key, s string) {
	if len(s) > MaxText {
		s = cut(s, MaxText)
		w.warn(key + ": is longer than text may be and was cut")
	}
	w.add(decoders.Reading{Key: key, Text: s, IsText: true})
}

// cut shortens s to at most n bytes and leaves its last character whole.
func cut(s string, n int) string {
	for n > 0 && !utf8.RuneStart(s[n]) {
		n--
	}
	return s[:n]
}

func (w *walk) add(r decoders.Reading) {
	switch {
	case r.Key == "" || len(r.Key) > maxKey:
		w.warn("a key is empty or longer than " + strconv.Itoa(maxKey) + " bytes")
	case len(w.res.Readings) >= MaxReadings:
		w.visits = -1
	default:
		w.res.Readings = append(w.res.Readings, r)
	}
}

func number(v any) (float64, bool) {
	switch n := reflect.ValueOf(v); {
	case n.CanFloat():
		return n.Float(), true
	case n.CanInt():
		return float64(n.Int()), true
	case n.CanUint():
		return float64(n.Uint()), true
	}
	return 0, false
}
