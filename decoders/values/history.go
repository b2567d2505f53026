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
// A history is a list of objects that all have a time (a member time, timestamp or date). The
// values of each object become readings at its time. Their keys do not include the index in the
// list, nor the name of the list if it is a common name such as "history" (childKey).
//
// An object {variable, value} names its value: the value becomes a reading with the key that
// variable has. A list of such objects with different names is a history even without times.
func AppendTimed(res *decoders.Result, key string, v any) { AppendAt(res, key, v, time.Time{}) }

// AppendAt adds values like AppendTimed. t is the time of values outside histories; zero if unknown.
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
	var historyNames []string
	for _, name := range slices.Sorted(maps.Keys(m)) {
		if hasHistory(m[name]) {
			historyNames = append(historyNames, name)
			continue
		}
		remaining[name] = m[name]
	}
	addAt(res, key, remaining, t)
	for _, name := range slices.Sorted(maps.Keys(remaining)) {
		warnUntimed(res, join(key, name), remaining[name])
	}
	for _, name := range historyNames {
		AppendAt(res, childKey(key, name, m[name]), m[name], t)
	}
}

// addAt adds readings and sets their time.
func addAt(res *decoders.Result, key string, v any, t time.Time) {
	oldCount := len(res.Readings)
	Append(res, key, v)
	for i := range res.Readings[oldCount:] {
		res.Readings[oldCount+i].Time = t
	}
}

// hasHistory reports whether a value is a history or an object that contains one outside other
// lists.
func hasHistory(v any) bool {
	if _, ok := history(v); ok {
		return true
	}
	m, _ := v.(map[string]any)
	for _, x := range m {
		if hasHistory(x) {
			return true
		}
	}
	return false
}

// childKey returns the key of the member name, with value v, of an object with a key. It is the
// key of the object if v is a history with a common name.
func childKey(key, name string, v any) string {
	if _, ok := history(v); ok && slices.Contains([]string{"history", "samples", "measurements", "records", "readings", "datalog"}, name) {
		return key
	}
	return join(key, name)
}

type sample struct {
	takenAt time.Time
	values  map[string]any
}

// history returns the samples of a history, or false if v is not a history.
func history(v any) ([]sample, bool) {
	list, _ := v.([]any)
	samples := make([]sample, 0, len(list))
	variables := map[string]bool{} // of the objects without a time
	for _, element := range list {
		m, _ := element.(map[string]any)
		t, otherMembers, ok := CutTime(m)
		s := sample{t, otherMembers}
		if name := variable(m); !ok && name != "" && !variables[name] {
			variables[name] = true
			s, ok = sample{values: nameByVariable(m)}, true
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

// CutTime returns the time of an object and its other members, converted by nameByVariable. It
// returns false if the object has no time.
func CutTime(m map[string]any) (t time.Time, remaining map[string]any, ok bool) {
	for _, name := range timeNames() {
		if t, ok := parseTime(m[name]); ok {
			remaining := maps.Clone(m)
			delete(remaining, name)
			return t, nameByVariable(remaining), true
		}
	}
	return time.Time{}, nil, false
}

// warnUntimed warns of the first invalid time in a list, which would be a history if the time
// were valid.
func warnUntimed(res *decoders.Result, key string, v any) {
	list, _ := v.([]any)
	for i, item := range list {
		m, _ := item.(map[string]any)
		if _, _, ok := CutTime(m); ok {
			continue
		}
		for _, name := range timeNames() {
			if t, isText := m[name].(string); isText {
				a := appender{res: res}
				a.warn(fmt.Sprintf("%s.%d.%s: is not a time from 2000 to 2099, so the list is not read as a history: %.40q", key, i, name, t))
				return
			}
		}
	}
}

// variable returns the name in an object {variable, value}, or "".
func variable(m map[string]any) string {
	name, _ := m["variable"].(string)
	if _, present := m["value"]; !present {
		return ""
	}
	return name
}

// nameByVariable converts {variable, value} to {name: value}, and other members such as unit to
// name.unit. Other objects are returned unchanged.
func nameByVariable(m map[string]any) map[string]any {
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

// parseTime parses a time from 2000 to 2099: ISO 8601 (in UTC if there is no zone), or seconds
// or milliseconds since 1970.
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
