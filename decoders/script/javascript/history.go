package javascript

import (
	"cmp"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/penstock/penstock/decoders"
	"github.com/penstock/penstock/decoders/iso8601"
	"github.com/penstock/penstock/decoders/values"
)

// add puts values into a result, under keys that begin with key.
//
// A list whose elements are all objects with a time of their own (a member
// time, timestamp or date) is a history: each element's values become readings
// at its time, under the keys they would have beside the list, or below the
// list's name when that says no more than that it is a list of samples. One that
// names what it measures, {variable, value}, gives the value under that name; a
// list of such elements needs no times, if each has another name.
func add(res *decoders.Result, key string, v any) { put(res, key, v, time.Time{}) }

func put(res *decoders.Result, key string, v any, at time.Time) {
	if samples, ok := history(v); ok {
		for _, s := range samples {
			put(res, key, s.values, s.at)
		}
		return
	}
	m, ok := v.(map[string]any)
	if !ok {
		addAt(res, key, v, at)
		return
	}
	rest := make(map[string]any, len(m))
	var nested []string
	for _, name := range slices.Sorted(maps.Keys(m)) {
		if holds(m[name]) {
			nested = append(nested, name)
			continue
		}
		rest[name] = m[name]
	}
	addAt(res, key, rest, at)
	for _, name := range nested {
		put(res, below(key, name, m[name]), m[name], at)
	}
}

// addAt adds readings and gives them a time.
func addAt(res *decoders.Result, key string, v any, at time.Time) {
	before := len(res.Readings)
	values.Append(res, key, v)
	if !at.IsZero() {
		for i := range res.Readings[before:] {
			res.Readings[before+i].Time = at
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

// below is the key of what a name holds.
func below(key, name string, v any) string {
	if _, ok := history(v); ok && slices.Contains([]string{"history", "samples", "measurements", "records", "readings", "datalog"}, name) {
		return key
	}
	if key == "" {
		return name
	}
	return key + "." + name
}

type sample struct {
	at     time.Time
	values map[string]any
}

func history(v any) ([]sample, bool) {
	list, _ := v.([]any)
	out := make([]sample, 0, len(list))
	named := map[string]bool{} // those without a time
	for _, each := range list {
		m, _ := each.(map[string]any)
		s, ok := sampled(m)
		if name := variable(m); !ok && name != "" && !named[name] {
			named[name] = true
			s, ok = sample{values: byVariable(m)}, true
		}
		if !ok {
			return nil, false
		}
		out = append(out, s)
	}
	return out, len(out) > 0
}

// sampled takes the time out of an object.
func sampled(m map[string]any) (sample, bool) {
	for _, name := range []string{"time", "timestamp", "date"} {
		if t, ok := parseTime(m[name]); ok {
			rest := maps.Clone(m)
			delete(rest, name)
			return sample{t, byVariable(rest)}, true
		}
	}
	return sample{}, false
}

// variable is the name in an object {variable, value}.
func variable(m map[string]any) string {
	name, _ := m["variable"].(string)
	if _, given := m["value"]; !given {
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
	out := make(map[string]any, len(m))
	for member, v := range m {
		switch member {
		case "variable":
		case "value":
			out[name] = v
		default:
			out[name+"."+member] = v
		}
	}
	return out
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

// measurements adds what normalizeUplink gave: one measurement or a list of
// them. The time of a measurement is that of its readings. Of several without
// a time, those after the first that give a key again have their place in the
// list before it.
func measurements(res *decoders.Result, v any) {
	list, ok := v.([]any)
	if !ok {
		list = []any{v}
	}
	taken := slots(res.Readings)
	for i, each := range list {
		m, _ := each.(map[string]any)
		if s, ok := sampled(m); ok {
			before := len(res.Readings)
			put(res, "", s.values, s.at)
			maps.Copy(taken, slots(res.Readings[before:]))
			continue
		}
		var own decoders.Result
		put(&own, "", m, time.Time{})
		for _, reading := range own.Readings {
			if taken[slotOf(reading)] {
				reading.Key = fmt.Sprintf("%d.%s", i, reading.Key)
			}
			taken[slotOf(reading)] = true
			res.Readings = append(res.Readings, reading)
		}
		res.Warnings = append(res.Warnings, own.Warnings...)
		res.Excess = cmp.Or(res.Excess, own.Excess)
	}
}

// slot identifies a reading of a frame.
type slot struct {
	key string
	at  int64
}

func slotOf(r decoders.Reading) slot { return slot{r.Key, r.Time.UnixNano()} }

func slots(readings []decoders.Reading) map[slot]bool {
	out := make(map[slot]bool, len(readings))
	for _, r := range readings {
		out[slotOf(r)] = true
	}
	return out
}

// merge adds the readings whose key and time are not there yet.
func merge(res *decoders.Result, more []decoders.Reading) {
	there := slots(res.Readings)
	for _, r := range more {
		switch {
		case there[slotOf(r)]:
		case len(res.Readings) >= values.MaxReadings:
			res.Excess = fmt.Sprintf("%s: a frame may give %d readings, the rest is left out", r.Key, values.MaxReadings)
		default:
			res.Readings = append(res.Readings, r)
		}
	}
}
