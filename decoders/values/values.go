// Package values converts decoded values (maps, lists, numbers, booleans and texts) to
// readings. The key of a reading is its path, with dots between the names
// ("air.temperature", "list.0.x").
//
// Numbers and strings become readings, booleans become 0 or 1, and null is omitted.
// A number that is not finite is refused with a warning, and a text longer than
// MaxText is cut. Readings beyond MaxReadings are omitted, which Excess reports.
package values

import (
	"cmp"
	"fmt"
	"maps"
	"math"
	"reflect"
	"slices"
	"strconv"
	"strings"

	"github.com/penstock/penstock/decoders"
)

const (
	// MaxReadings is the largest number of readings of one frame.
	MaxReadings = 10_000
	// MaxText is the largest length of a text, in bytes.
	MaxText = 4096

	// maxVisits is the largest number of visited values, including values without a reading.
	maxVisits = 2 * MaxReadings
	// maxDepth is twice the largest depth of a JSON body.
	maxDepth    = 128
	maxKey      = 256
	maxWarnings = 20
)

// Append adds the values within v to a result, with keys that begin with key.
// v may consist of maps, lists, strings, booleans, and numbers of any Go type.
func Append(res *decoders.Result, key string, v any) {
	a := appender{res: res, visits: maxVisits}
	a.addValue(key, v, 0)
	if a.visits < 0 {
		res.Excess = fmt.Sprintf("%s: a frame may have at most %d readings; the others are ignored", cmp.Or(key, "the object"), MaxReadings)
	}
}

type appender struct {
	res    *decoders.Result
	visits int
}

func (a *appender) warn(text string) {
	if len(a.res.Warnings) < maxWarnings {
		a.res.Warnings = append(a.res.Warnings, text)
	}
}

func (a *appender) addValue(key string, v any, depth int) {
	if a.visits--; a.visits < 0 {
		return
	}
	switch v := v.(type) {
	case nil:
	case string:
		a.addText(key, v)
	case bool:
		n := 0.0
		if v {
			n = 1
		}
		a.addNumber(key, n)
	case map[string]any, []any:
		if depth >= maxDepth {
			a.warn(key[:min(len(key), maxKey)] + ": is nested too deep")
			return
		}
		a.addMembers(key, v, depth+1)
	case []int:
		for i, n := range v {
			a.addValue(join(key, strconv.Itoa(i)), n, depth+1)
		}
	default:
		n, ok := number(v)
		if !ok {
			a.warn(fmt.Sprintf("%s: is not a value: %T", key, v))
			return
		}
		a.addNumber(key, n)
	}
}

// addMembers adds the members of an object by name, so that equal frames have equal results, or
// the items of a list.
func (a *appender) addMembers(key string, v any, depth int) {
	object, _ := v.(map[string]any)
	for _, name := range slices.Sorted(maps.Keys(object)) {
		a.addValue(join(key, name), object[name], depth)
	}
	list, _ := v.([]any)
	for i := 0; i < len(list) && a.visits >= 0; i++ {
		a.addValue(join(key, strconv.Itoa(i)), list[i], depth)
	}
}

func join(key, name string) string {
	if key == "" {
		return name
	}
	return key + "." + name
}

func (a *appender) addNumber(key string, n float64) {
	if math.IsNaN(n) || math.IsInf(n, 0) {
		a.warn(key + ": is not a finite number")
		return
	}
	a.add(decoders.Reading{Key: key, Value: n})
}

func (a *appender) addText(key, s string) {
	if len(s) > MaxText {
		s = strings.ToValidUTF8(s[:MaxText], "")
		a.warn(fmt.Sprintf("%s: is longer than %d bytes and was cut", key, MaxText))
	}
	a.add(decoders.Reading{Key: key, Text: s, IsText: true})
}

func (a *appender) add(r decoders.Reading) {
	switch {
	case r.Key == "" || len(r.Key) > maxKey:
		a.warn("a key is empty or longer than " + strconv.Itoa(maxKey) + " bytes")
	case len(a.res.Readings) >= MaxReadings:
		a.visits = -1
	default:
		a.res.Readings = append(a.res.Readings, r)
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
