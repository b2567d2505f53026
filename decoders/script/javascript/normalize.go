package javascript

import (
	"cmp"
	"fmt"
	"maps"

	"github.com/dop251/goja"

	"github.com/penstock/penstock/decoders"
	"github.com/penstock/penstock/decoders/values"
)

// normalize adds the values that normalizeUplink makes of a codec's data. A
// key that the codec gave already stays as it is. When normalizeUplink fails,
// the codec's own values are kept.
func (r *realm) normalize(f goja.Callable, data goja.Value, res *decoders.Result) {
	const name = "normalizeUplink"
	input := r.vm.NewObject()
	_ = input.Set("data", data)
	v, err := f(goja.Undefined(), input)
	if err != nil {
		res.Errors = append(res.Errors, r.failure(name, err).Error())
		return
	}
	var ownResult decoders.Result
	x := exporter{r: r}
	out, err := x.envelope(name, v, &ownResult)
	var value any
	if err == nil && out != nil {
		value = x.value(out, 0)
	}
	switch {
	case err != nil:
		ownResult.Errors = append(ownResult.Errors, err.Error())
	case x.excess != "":
		ownResult.Errors = append(ownResult.Errors, name+": "+x.excess)
	default:
		measurements(&ownResult, value)
	}
	res.Warnings = append(res.Warnings, ownResult.Warnings...)
	res.Errors = append(res.Errors, ownResult.Errors...)
	res.Excess = cmp.Or(res.Excess, ownResult.Excess)
	// Add the readings whose key and time are not there yet.
	taken := slots(res.Readings)
	for _, reading := range ownResult.Readings {
		switch {
		case taken[slotOf(reading)]:
		case len(res.Readings) >= values.MaxReadings:
			res.Excess = fmt.Sprintf("%s: a frame may give %d readings, the rest is left out", reading.Key, values.MaxReadings)
		default:
			res.Readings = append(res.Readings, reading)
		}
	}
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
