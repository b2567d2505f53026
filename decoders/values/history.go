package values

import (
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/penstock/penstock/decoders"
	"github.com/penstock/penstock/decoders/iso8601"
)

// AppendTimed adds the values within v to a result like Append, and supports histories.
//
// A list whose elements are all objects with a time of their own (a member time, timestamp or
// date) is a history: each element's values become readings at its time, under the keys they
// would have next to the list, or below the list's name when that says no more than that it
// is a list of samples. One that names what it measures, {variable, value}, gives the value
// under that name; a list of such elements needs no times, if each has another name.
func AppendTimed(res *decoders.Result, key string, v any) { AppendAt(res, key, v, time.Time{}) }

// AppendAt is AppendTimed for values that have a time of their own unless it is zero.
func AppendAt(res *decoders.Result, key string, v any, t time.Time) {
	if samples, ok := history(v); ok {
		for _, s := range samples {
			AppendAt(res, key, s.values, s.takenAt)
		}
		return
	}
	m, ok := v.(map[string]any)
	if !ok {
		addAt(res, key, v, t)
		return
	}
	remaining := make(map[string]any, len(m))
	var nested []string
	for _, name := range slices.Sorted(maps.Keys(m)) {
		if holds(m[name]) {
			nested = append(nested, name)
			continue
		}
		remaining[name] = m[name]
	}
	addAt(res, key, remaining, t)
	for _, name := range slices.Sorted(maps.Keys(remaining)) {
		warnUntimed(res, join(key, name), remaining[name])
	}
	for _, name := range nested {
		AppendAt(res, childKey(key, name, m[name]), m[name], t)
	}
}

// addAt adds readings and gives them a time.
func addAt(res *decoders.Result, key string, v any, t time.Time) {
	count := len(res.Readings)
	Append(res, key, v)
	if !t.IsZero() {
		for i := range res.Readings[count:] {
			res.Readings[count+i].Time = t
		}
	}
}

// holds reports whether there is a history within a value that can be reached
// without going through a list.
func holds(v any) bool {
	if _, ok := history(v); ok {
		return true
	}
	m, _ := v.(map[string]any)
	for _, x := range m {
		if holds(x) {
			return true
		}
	}
	return false
}

// childKey returns the key of the value v of a name in an object with a key. A list of
// samples adds nothing to the key if its name only says that it is one.
func childKey(key, name string, v any) string {
	if _, ok := history(v); ok && slices.Contains([]string{"history", "samples", "measurements", "records", "readings", "datalog"}, name) {
		return key
	}
	if key == "" {
		return name
	}
	return key + "." + name
}

type sample struct {
	takenAt time.Time
	values  map[string]any
}

func history(v any) ([]sample, bool) {
	list, _ := v.([]any)
	samples := make([]sample, 0, len(list))
	named := map[string]bool{} // those without a time
	for _, element := range list {
		m, _ := element.(map[string]any)
		t, timed, ok := CutTime(m)
		s := sample{t, timed}
		if name := variable(m); !ok && name != "" && !named[name] {
			named[name] = true
			s, ok = sample{values: byVariable(m)}, true
		}
		if !ok {
			return nil, false
		}
		samples = append(samples, s)
	}
	return samples, len(samples) > 0
}

// timeNames returns the members of an object that hold its time.
func timeNames() []string { return []string{"time", "timestamp", "date"} }

// CutTime returns the time of an object and its other members, of {variable, value} the
// value under its name. It returns false if the object has no time.
func CutTime(m map[string]any) (t time.Time, remaining map[string]any, ok bool) {
	for _, name := range timeNames() {
		if t, ok := parseTime(m[name]); ok {
			remaining := maps.Clone(m)
			delete(remaining, name)
			return t, byVariable(remaining), true
		}
	}
	return time.Time{}, nil, false
}

// warnUntimed notes the first text of a list that stands for a time and cannot be read
// as one: but for it the list would be a history.
func warnUntimed(res *decoders.Result, key string, v any) {
	list, _ := v.([]any)
	for i, item := range list {
		m, _ := item.(map[string]any)
		if _, _, ok := CutTime(m); ok {
			continue
		}
		for _, name := range timeNames() {
			if t, isText := m[name].(string); isText {
				w := walk{res: res}
				w.warn(fmt.Sprintf("%s.%d.%s: is not a time from 2000 to 2099, so the list is not read as a history: %.40q", key, i, name, t))
				return
			}
		}
	}
}

// variable is the name in an object {variable, value}.
func variable(m map[string]any) string {
	name, _ := m["variable"].(string)
	if _, present := m["value"]; !present {
		return ""
	}
	return name
}

// byVariable brings the value of {variable, value} under its name, and what else
// there is, as the unit, below that.
func byVariable(m map[string]any) map[string]any {
	name := variable(m)
	if name == "" {
		return m
	}
	flat := make(map[string]any, len(m))
	for member, v := range m {
		switch member {
		case "variable":
		case "value":
			flat[name] = v
		default:
			flat[name+"."+member] = v
		}
	}
	return flat
}

// parseTime reads a time from 2000 to 2099: ISO 8601, without a zone UTC, or seconds or
// milliseconds since 1970.
func parseTime(v any) (time.Time, bool) {
	var t time.Time
	switch v := v.(type) {
	case string:
		t, _ = iso8601.Parse(v)
	case int64:
		t = epoch(float64(v))
	case float64:
		t = epoch(v)
	}
	return t, t.Year() >= 2000 && t.Year() < 2100
}

func epoch(n float64) time.Time {
	if n < 1e11 {
		n *= 1000
	}
	if n < 0 || n > 5e12 {
		return time.Time{}
	}
	return time.UnixMilli(int64(n)).UTC()
}
