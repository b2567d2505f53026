package javascript

import (
	"cmp"
	"fmt"
	"maps"

	"github.com/penstock/penstock/decoders"
	"github.com/penstock/penstock/decoders/values"
)

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
	for i, value := range list {
		m, _ := value.(map[string]any)
		if t, others, ok := values.CutTime(m); ok {
			oldCount := len(res.Readings)
			values.AppendAt(res, "", others, t)
			maps.Copy(taken, slots(res.Readings[oldCount:]))
			continue
		}
		var ownResult decoders.Result
		values.AppendTimed(&ownResult, "", m)
		for _, reading := range ownResult.Readings {
			if taken[slotOf(reading)] {
				reading.Key = fmt.Sprintf("%d.%s", i, reading.Key)
			}
			taken[slotOf(reading)] = true
			res.Readings = append(res.Readings, reading)
		}
		res.Warnings = append(res.Warnings, ownResult.Warnings...)
		res.Excess = cmp.Or(res.Excess, ownResult.Excess)
	}
}

// slot identifies a reading of a frame.
type slot struct {
	key    string
	offset int64
}

func slotOf(r decoders.Reading) slot { return slot{r.Key, r.Time.UnixNano()} }

func slots(readings []decoders.Reading) map[slot]bool {
	result := make(map[slot]bool, len(readings))
	for _, r := range readings {
		result[slotOf(r)] = true
	}
	return result
}

// merge adds the readings whose key and time are not there yet.
func merge(res *decoders.Result, readings []decoders.Reading) {
	result := slots(res.Readings)
	for _, r := range readings {
		switch {
		case result[slotOf(r)]:
		case len(res.Readings) >= values.MaxReadings:
			res.Excess = fmt.Sprintf("%s: a frame may give %d readings, the rest is left out", r.Key, values.MaxReadings)
		default:
			res.Readings = append(res.Readings, r)
		}
	}
}
